package api

import (
	"net/http"
	"regexp"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"writ.example/writ/engine/resource"
	"writ.example/writ/internal/apikey"
)

// A credential in a URL is leaked, because browsers, proxies and access logs keep URLs. A request with such a URL is
// refused even if its Authorization header is good. So the sender learns of the leak at once. The URL is neither logged
// nor echoed.
//
// The status is 400 if the request has an Authorization header or the route needs no credential. RFC 6750, section 3.1,
// says so of a token that is sent in two ways. In all other cases the credential is missing, and the status is 401.

// credentialParams are the names of query parameters that hold credentials. A dash in a name counts as an underscore.
const credentialParams = " access_token token api_key apikey auth_token authorization bearer client_secret id_token " +
	"jwt refresh_token secret "

// carriesCredential reports whether the URL of a request has a credential in it. It looks at the path only if openPath
// is set: for paths with a parameter and for unknown paths.
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

// credentials matches texts that look like an API key or a JWT. A JWT is three parts of base64url with dots between
// them; the first part is a JSON object.
var credentials = regexp.MustCompile(apikey.Pattern + `|eyJ[\w-]{5,}\.[\w-]{8,}\.[\w-]{8}`)

// holdsCredential reports whether text contains something that looks like an API key or a JWT. text may be
// percent-encoded.
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

// refuseURL returns the problem of a request with a credential in its URL. guarded says that the route needs a
// credential.
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
