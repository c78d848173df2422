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

// keys matches what looks like an API key.
var keys = regexp.MustCompile(apikey.Pattern)

// holdsCredential reports whether text, percent-encoded or not, has what looks
// like an API key or a JWT in it.
func holdsCredential(text string) bool {
	for range 3 { // clients may encode more than once
		if keys.MatchString(text) || findJWT(text) {
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

// findJWT looks for three dotted parts of base64url, of which the first is a
// JSON object.
func findJWT(text string) bool {
	const least = 8 // characters of a part
	for {
		i := strings.Index(text, "eyJ")
		if i < 0 {
			return false
		}
		text = text[i:]
		parts, rest := 0, text
		for {
			n := base64URLRun(rest)
			if n < least {
				break
			}
			if parts++; parts == 3 {
				return true
			}
			if rest = rest[n:]; len(rest) == 0 || rest[0] != '.' {
				break
			}
			rest = rest[1:]
		}
		// A later "eyJ" of the same run would begin a shorter part before the same
		// others. Looking at it would make the work the square of the length.
		text = text[base64URLRun(text):]
	}
}

// base64URLRun is how many characters of base64url b begins with.
func base64URLRun(b string) int {
	for i, c := range []byte(b) {
		if (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && c != '-' && c != '_' {
			return i
		}
	}
	return len(b)
}

// refuseURL is the problem of a request that carries a credential in its URL.
func refuseURL(fc *fasthttp.RequestCtx, guarded bool) error {
	p := problem{
		Status: http.StatusBadRequest, Code: codeCredentialInURL,
		Detail: "There is a credential in the URL, where logs and browsers keep it. Revoke it, and send the new one " +
			"as Authorization: Bearer.",
	}
	if guarded && len(fc.Request.Header.Peek(fiber.HeaderAuthorization)) == 0 {
		p.Status = http.StatusUnauthorized
	}
	return refuse(p)
}
