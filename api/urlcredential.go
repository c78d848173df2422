package api

import (
	"net/http"
	"regexp"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"writ/engine/resource"
	"writ/internal/apikey"
)

// A credential in a URL is leaked: browsers, proxies and access logs keep URLs. Such a
// request is refused even if it has a good Authorization header, so that its sender finds
// out at once. Its URL is neither logged nor echoed.
//
// The status is 400 with an Authorization header or on a route that needs no credential,
// as RFC 6750, section 3.1, says of a token that is sent in two ways. Otherwise the
// credential is missing: 401.

// credentialParams are the names of query parameters for credentials. Dashes count as
// underscores.
const credentialParams = " access_token token api_key apikey auth_token authorization bearer client_secret id_token " +
	"jwt refresh_token secret "

// carriesCredential reports whether a request has a credential in its URL. Only paths
// with a parameter, and unknown paths, can hold one.
func carriesCredential(fc *fasthttp.RequestCtx, openPath bool) bool {
	uri := fc.Request.URI()
	if q := uri.QueryString(); len(q) > 0 && queryHoldsCredential(string(q)) {
		return true
	}
	return openPath && holdsCredential(string(uri.PathOriginal()))
}

func queryHoldsCredential(query string) bool {
	for param := range strings.FieldsFuncSeq(query, func(r rune) bool { return r == '&' || r == ';' }) {
		name, value, _ := strings.Cut(param, "=")
		if value != "" && isCredentialParam(resource.Decode(name)) || holdsCredential(param) {
			return true
		}
	}
	return false
}

func isCredentialParam(name string) bool {
	name = strings.ToLower(strings.ReplaceAll(name, "-", "_"))
	return name != "" && !strings.Contains(name, " ") && strings.Contains(credentialParams, " "+name+" ")
}

// credentials matches what looks like an API key or a JWT: three dotted parts of base64url,
// of which the first is a JSON object.
var credentials = regexp.MustCompile(apikey.Pattern + `|eyJ[\w-]{5,}\.[\w-]{8,}\.[\w-]{8}`)

// holdsCredential reports whether text, percent-encoded or not, has what looks
// like an API key or a JWT in it.
func holdsCredential(text string) bool {
	for range 3 { // clients may encode more than once
		if credentials.MatchString(text) {
			return true
		}
		plain := resource.Decode(text)
		if len(plain) == len(text) {
			return false
		}
		text = plain
	}
	return false
}

// refuseURL is the problem of a request that carries a credential in its URL.
func refuseURL(fc *fasthttp.RequestCtx, guarded bool) error {
	p := problem{
		Code: codeCredentialInURL,
		Detail: "There is a credential in the URL, where logs and browsers keep it. Revoke it, and send the new one " +
			"as Authorization: Bearer.",
	}
	if guarded && len(fc.Request.Header.Peek(fiber.HeaderAuthorization)) == 0 {
		p.Status = http.StatusUnauthorized
	}
	return refuseWith(p)
}
