package api

import (
	"strings"

	"github.com/valyala/fasthttp"
)

type header struct{ name, value []byte }

// everyResponse returns the headers of every response, as OWASP's REST Security cheat sheet recommends them. They
// forbid that another site frames or loads an answer, that a browser guesses its type, and that a cache keeps it. The
// responses of site replace some of these headers with their own. Strict-Transport-Security is sent only if apiURL
// begins with https. From a deployment without TLS it would lock clients out.
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
