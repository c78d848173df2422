package api

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"writ.example/writ/api/limit"
	"writ.example/writ/engine/condition"
)

const (
	typeJSON    = "application/json"
	typeProblem = "application/problem+json"
)

func writeProblem(fc *fasthttp.RequestCtx, p *problem, requestID []byte) {
	body := p.encode(instance(fc), string(requestID))
	res := &fc.Response
	res.SetStatusCode(p.Status)
	res.Header.SetContentType(typeProblem)
	if p.Status == http.StatusUnauthorized {
		res.Header.Set(fiber.HeaderWWWAuthenticate, "Bearer")
	}
	if p.rateLimit != "" {
		res.Header.Set(limit.HeaderLevel, p.rateLimit)
		res.Header.Set(limit.HeaderPolicy, p.ratePolicy)
	}
	if p.retryAfter > 0 {
		res.Header.Set(fiber.HeaderRetryAfter, strconv.Itoa(p.retryAfter))
	}
	if p.allow != "" {
		res.Header.Set(fiber.HeaderAllow, p.allow)
	}
	if p.replayed {
		res.Header.Set(headerReplayed, "true")
	}
	res.SetBodyRaw(body)
}

// encode returns the JSON of p for the request with this instance and requestID.
func (p *problem) encode(instance, requestID string) []byte {
	words := strings.ReplaceAll(p.Code, "_", " ")
	p.Type, p.Title = "urn:writ:problem:"+p.Code, strings.ToUpper(words[:1])+words[1:]
	p.Retryable = retryable[p.Code]
	p.Instance, p.RequestID = instance, requestID
	body, err := json.Marshal(p)
	if err != nil {
		p.Status = http.StatusInternalServerError
		return []byte(
			`{"type":"urn:writ:problem:internal","title":"Internal","status":500,"code":"internal","ok":false,` +
				`"retryable":true}`,
		)
	}
	return body
}

// instance returns the request's path as it was sent. The query is left out, because it may hold
// data that must not be logged. For a path with a credential instance returns "/".
func instance(fc *fasthttp.RequestCtx) string {
	original := string(fc.Request.URI().PathOriginal())
	if holdsCredential(original) {
		return "/"
	}
	path := strings.ToValidUTF8(original, "�")
	if len(path) > condition.MaxLabel {
		path = strings.ToValidUTF8(path[:condition.MaxLabel], "")
	}
	return path
}
