package api

import (
	"strings"

	"github.com/valyala/fasthttp"
)

type header struct{ name, value []byte }

// everyResponse returns the headers of every response: no browser may guess its type, and no cache may keep it. The
// responses of site replace some of these headers. Strict-Transport-Security is sent only if apiURL begins with https.
// A deployment without TLS would lock its clients out with it.
func everyResponse(apiURL string) []header {
	lines := []string{"X-Content-Type-Options: nosniff", "Cache-Control: no-store"}
	if strings.HasPrefix(apiURL, "https://") {
		lines = append(lines, "Strict-Transport-Security: max-age=31536000")
	}
	return headersOf(lines...)
}

// publicResponse returns the further headers of what anybody gets: pages, and documents that a page may show. No other
// site may frame or load them. An answer to a credential is JSON, CSV or events. A browser shows none of these as a
// page, and no other site can make it send the credential.
func publicResponse() []header {
	return headersOf(
		"X-Frame-Options: DENY",
		"Referrer-Policy: no-referrer",
		"Content-Security-Policy: default-src 'none'; frame-ancestors 'none'",
		"Cross-Origin-Resource-Policy: same-origin",
	)
}

func headersOf(lines ...string) []header {
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
