package api

import (
	"strings"

	"github.com/valyala/fasthttp"
)

type header struct{ name, value []byte }

// everyResponse are the headers that every response has, whatever it answers:
// what OWASP's REST Security cheat sheet asks for. No answer is a page to be
// framed, guessed at, kept or loaded by another site; the pages that are have
// policies of their own. Strict-Transport-Security is sent only where clients
// are told to use https: from a deployment without TLS it would lock them out.
func everyResponse(apiURL string) []header {
	lines := []string{
		"X-Content-Type-Options: nosniff",
		"Cache-Control: no-store",
		"X-Frame-Options: DENY",
		"Referrer-Policy: no-referrer",
		"Content-Security-Policy: default-src 'none'; frame-ancestors 'none'",
		"Cross-Origin-Resource-Policy: same-origin",
	}
	if strings.HasPrefix(apiURL, "https://") {
		lines = append(lines, "Strict-Transport-Security: max-age=31536000")
	}
	all := make([]header, len(lines))
	for i, line := range lines {
		name, value, _ := strings.Cut(line, ": ")
		all[i] = header{[]byte(name), []byte(value)}
	}
	return all
}

func setAll(h *fasthttp.ResponseHeader, headers []header) {
	for i := range headers {
		h.SetCanonical(headers[i].name, headers[i].value)
	}
}
