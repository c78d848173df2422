package writ

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

var (
	// ErrAnswer means that an answer contradicts itself or does not come from a writ server. It allows
	// nothing.
	ErrAnswer = errors.New("writ: the answer cannot be relied on")
	// ErrExpired means that the receipt of an allow has expired. The decision must not be acted upon.
	ErrExpired = errors.New("writ: the receipt has expired")
	// ErrAlreadyRedeemed means that another call has used the approval.
	ErrAlreadyRedeemed = errors.New("writ: another call has used this approval")
	// ErrPending means that nobody has decided about a held action yet.
	ErrPending = errors.New("writ: the approval is pending")
)

// Problem is an answer with another status than success. Code is stable, the texts may change.
type Problem struct { //nolint:errname // RFC 9457's word
	Status    int    `json:"status"`
	Code      string `json:"code"` // empty if the answer is no problem document
	Title     string `json:"title"`
	Detail    string `json:"detail"`
	RequestID string `json:"request_id"`
	// Errors names the members that were refused.
	Errors []FieldError `json:"errors,omitempty"`
	// Retryable says that the same request may succeed later. If repeating it is safe, the client has done
	// so already.
	Retryable bool `json:"retryable"`
}

// FieldError says why a member of a request was refused.
type FieldError struct {
	Field   string `json:"field"`
	Message string `json:"message"`
}

func (p *Problem) Error() string {
	if p.Code == "" {
		return fmt.Sprintf("writ: status %d: %s", p.Status, p.Detail)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "writ: %s: %s", p.Code, p.Detail)
	for _, e := range p.Errors {
		fmt.Fprintf(&b, "; %s: %s", e.Field, e.Message)
	}
	return b.String()
}

// problemOf reads an answer with another status than success.
func problemOf(resp *http.Response, body []byte) *Problem {
	p := &Problem{Retryable: mayPass(resp.StatusCode)} // unless the document says something else
	if err := json.Unmarshal(body, p); err != nil || p.Code == "" {
		p = &Problem{
			Retryable: mayPass(resp.StatusCode),
			Detail:    "the answer is no problem document, so it may be that of a proxy",
		}
		if to := resp.Header.Get("Location"); resp.StatusCode/100 == 3 && to != "" {
			p.Detail = fmt.Sprintf("the server redirects to %.200q, where no API key is sent", to)
		}
	}
	p.Status = resp.StatusCode
	if !mayPass(p.Status) && p.Status != http.StatusInternalServerError {
		p.Retryable = false
	}
	return p
}

// mayPass reports whether the same request may succeed later, by the status of its answer.
func mayPass(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// Denied is the error of an action that is denied.
type Denied struct{ Decision Decision } //nolint:errname // the word of all clients

func (d *Denied) Error() string { return "writ: denied: " + d.Decision.Explain() }
