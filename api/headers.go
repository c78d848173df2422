package api

import (
	"strings"

	"github.com/valyala/fasthttp"
)

type header struct{ name, value []byte }

// everyResponse returns the headers of every response. They follow OWASP's REST Security cheat
// sheet: no other site may frame or load an answer, no browser may guess its type, and no cache may
// keep it. The responses of site replace some of these headers. Strict-Transport-Security is sent
// only if apiURL begins with https. A deployment without TLS would lock its clients out with it.
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
