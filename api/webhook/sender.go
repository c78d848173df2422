package webhook

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"writ.example/writ/storage"
)

const (
	// maxAnswer is the number of bytes that are read of an answer's body. The connection can be
	// used again only after the body is read. The body is not kept. The same number bounds the
	// answer's header.
	maxAnswer = 16 << 10
	// maxWorking is the number of webhooks that are served at once. maxConnections is the number
	// of connections to each webhook. Memory holds one batch of each webhook.
	maxWorking     = 64
	maxConnections = 8
)

// attemptTimeout bounds an attempt, from resolving the name to the end of the answer.
const attemptTimeout = 10 * time.Second

// secretBytes is the length of a secret and of its hash.
const secretBytes = 32

// NewSecret returns a new secret in the form of Standard Webhooks.
func NewSecret() string {
	b := make([]byte, secretBytes)
	rand.Read(b)
	return "whsec_" + base64.StdEncoding.EncodeToString(b)
}

// sender makes attempts. It is safe for concurrent use.
type sender struct {
	secure, plain *http.Transport
	agent         string
}

// transport returns a transport without a proxy, because a proxy would connect to addresses that
// are not checked. A transport follows no redirects.
func transport(t Targets, secure bool) *http.Transport {
	return &http.Transport{
		DialContext:            t.dialer(secure).DialContext,
		TLSHandshakeTimeout:    connectTimeout,
		MaxResponseHeaderBytes: maxAnswer,
		MaxConnsPerHost:        maxConnections,
		MaxIdleConnsPerHost:    maxConnections,
		MaxIdleConns:           maxWorking * maxConnections,
		IdleConnTimeout:        30 * time.Second,
		DisableCompression:     true,
	}
}

func (s *sender) close() {
	s.secure.CloseIdleConnections()
	s.plain.CloseIdleConnections()
}

// These are the problems of attempts. The list of deliveries shows them, and they are labels of a
// metric.
const (
	problemRefused  = "address_refused"
	problemName     = "name_not_resolved"
	problemTimeout  = "timeout"
	problemConnect  = "no_connection"
	problemRedirect = "redirect"
	problemStatus   = "status"
	problemSecret   = "secret"

	delivered = "delivered" // the label of attempts without a problem
)

// send makes one attempt to deliver d at the time at. answer is the status code of the answer, or
// 0 without an answer. problem is empty if d was delivered.
func (s *sender) send(
	ctx context.Context, w *storage.Webhook, d *storage.Delivery, at time.Time,
) (answer int, problem string) {
	signature, err := sign(w, d, at)
	if err != nil {
		return 0, problemSecret
	}
	to, err := url.Parse(w.URL)
	if err != nil {
		return 0, problemConnect
	}
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	req := (&http.Request{
		Method: http.MethodPost, URL: to, Host: to.Host, Body: io.NopCloser(bytes.NewReader(d.Body)),
		ContentLength: int64(len(d.Body)),
		Header: http.Header{
			"Content-Type": {"application/json"}, "User-Agent": {s.agent},
			"Webhook-Id": {d.MessageID}, "Webhook-Timestamp": {strconv.FormatInt(at.Unix(), 10)},
			"Webhook-Signature": {signature},
		},
	}).WithContext(ctx)
	transport := s.secure
	if to.Scheme == "http" {
		transport = s.plain
	}
	res, err := transport.RoundTrip(req)
	if err != nil {
		return 0, problemOf(err)
	}
	defer res.Body.Close()
	if _, err := io.CopyN(io.Discard, res.Body, maxAnswer); err != nil && !errors.Is(err, io.EOF) {
		return res.StatusCode, problemOf(err)
	}
	switch res.StatusCode / 100 {
	case 2:
		return res.StatusCode, ""
	case 3:
		return res.StatusCode, problemRedirect
	}
	return res.StatusCode, problemStatus
}

// sign returns the signatures of d. There is one signature for each secret of w that is valid at
// the time at.
func sign(w *storage.Webhook, d *storage.Delivery, at time.Time) (string, error) {
	var all []string
	for _, secret := range w.Secrets {
		if !secret.Until.IsZero() && !at.Before(secret.Until) {
			continue
		}
		signer, err := standardwebhooks.NewWebhook(secret.Secret)
		if err != nil {
			return "", fmt.Errorf("reading a secret: %w", err)
		}
		signature, err := signer.Sign(d.MessageID, at, d.Body)
		if err != nil {
			return "", fmt.Errorf("signing: %w", err)
		}
		all = append(all, signature)
	}
	if len(all) == 0 {
		return "", errors.New("no secret signs")
	}
	return strings.Join(all, " "), nil
}

// problemOf returns the problem for err. It does not quote err, which may contain the URL and
// parts of the answer.
func problemOf(err error) string {
	var (
		timeout net.Error
		name    *net.DNSError
	)
	switch {
	case errors.Is(err, errRefused), errors.Is(err, errPlain):
		return problemRefused
	case errors.As(err, &name):
		return problemName
	case errors.As(err, &timeout) && timeout.Timeout():
		return problemTimeout
	}
	return problemConnect
}
