package api

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"writ.example/writ/internal/apikey"
)

// escapeAll percent-encodes every byte.
func escapeAll(s string) string {
	var b strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&b, "%%%02x", s[i])
	}
	return b.String()
}

func TestCredentialInURL_IsRefusedEverywhere(t *testing.T) {
	h := start(t)
	key, _ := h.key(acme, Scopes()...)
	operator := h.operator(acme)
	for name, target := range map[string]string{
		"access_token":              "/v1/rules?access_token=x",
		"token, second":             "/v1/rules?limit=1&token=x",
		"token by semicolon":        "/v1/rules?limit=1;token=x",
		"api-key":                   "/v1/rules?API-Key=x",
		"an encoded name":           "/v1/rules?" + escapeAll("authorization") + "=x",
		"a key under any name":      "/v1/rules?cursor=" + key,
		"a key as a name":           "/v1/rules?" + key,
		"a JWT under any name":      "/v1/rules?cursor=" + operator,
		"an encoded key":            "/v1/rules?cursor=" + escapeAll(key),
		"twice encoded":             "/v1/rules?cursor=" + url.QueryEscape(escapeAll(key)),
		"a key that was cut":        "/v1/rules?cursor=" + key[:40],
		"amid other text":           "/v1/rules?cursor=Bearer+" + key,
		"a key in a path":           "/v1/tokens/" + key,
		"an encoded key in it":      "/v1/tokens/" + escapeAll(key),
		"a JWT in a path":           "/v1/agents/" + operator + "/status",
		"a page":                    "/?access_token=x",
		"the description":           "/openapi.json?api_key=x",
		"the health check":          "/health?token=x",
		"a file of a page":          "/assets/style.css?token=x",
		"an unknown path":           "/nope?token=x",
		"a key in unknown path":     "/nope/" + key,
		"a JWT in unknown path":     "/" + operator,
		"an unknown path below one": "/health/" + key,
	} {
		t.Run(name, func(t *testing.T) {
			method := http.MethodGet
			switch {
			case strings.HasPrefix(target, "/v1/tokens/"):
				method = http.MethodDelete
			case strings.HasPrefix(target, "/v1/agents/"):
				method = http.MethodPatch
			}
			good := h.do(method, target, key, nil)
			good.wantProblem(http.StatusBadRequest, codeCredentialInURL)
			want := http.StatusBadRequest
			if strings.HasPrefix(target, "/v1/") {
				want = http.StatusUnauthorized
			}
			bare := h.do(method, target, "", nil)
			bare.wantProblem(want, codeCredentialInURL)
			for _, r := range []*reply{good, bare} {
				if body := string(r.body); strings.Contains(body, key[:40]) || strings.Contains(body, operator) || strings.Contains(body, "%") {
					t.Errorf("body = %s, want nothing of the credential", body)
				}
			}
		})
	}
	if log := h.log.String(); strings.Contains(log, key) || strings.Contains(log, operator) {
		t.Errorf("log = %s, want no credential", log)
	}
}

func TestCredentialInURL_OthersAreLeftAlone(t *testing.T) {
	h := start(t)
	key, id := h.key(acme, Scopes()...)
	for target, want := range map[string]int{
		"/v1/authorizations?agent_id=writ_bot":                                  200,
		"/v1/authorizations?agent_id=token":                                     200,
		"/v1/authorizations?action_type=eyJhbGci.x.y":                           200,
		"/v1/authorizations?agent_id=writ_" + strings.Repeat("a", apikey.IDLen): 200, // a key's id alone is public
		"/health?probe=1":                 200,
		"/v1/rules?token=":                400, // treated like any unknown parameter
		"/v1/rules?cursor=eyJhIjoxfQ":     400,
		"/v1/rules?a%zz=b&c%4=d&cursor=%": 400,
	} {
		r := h.do("GET", target, key, nil)
		if r.status != want || r.status != http.StatusOK && r.code() == codeCredentialInURL {
			t.Errorf("GET %s = %d %s, want %d", target, r.status, r.body, want)
		}
	}
	h.do("DELETE", "/v1/tokens/"+id, h.operator(acme), nil).wantStatus(http.StatusNoContent)
}

// TestHoldsCredential_TakesTimeInProportion checks that a text with many beginnings of a JWT is
// searched in linear time. Anybody can send such a text without a credential. With quadratic time
// the search would take minutes.
func TestHoldsCredential_TakesTimeInProportion(t *testing.T) {
	if holdsCredential(strings.Repeat("eyJ", 1<<20)) {
		t.Error("holdsCredential of a JWT's beginning over and over = true, want false")
	}
	for _, jwt := range []string{"eyJeyJ_-8.12345678.12345678", "eyJ.eyJ45678.12345678.12345678", "xxeyJ45678.eyJ45678.eyJ45678"} {
		if !holdsCredential(jwt) {
			t.Errorf("holdsCredential(%q) = false, want true", jwt)
		}
	}
}

func FuzzHoldsCredential(f *testing.F) {
	key, _ := apikey.New()
	for _, prefix := range []string{"", "writ_", "eyJ", "eyJ.eyJ.", "%", "%7", "writ_01tRy6czI6jAOLpZvq3hw1"} {
		f.Add(prefix, "")
	}
	f.Fuzz(func(t *testing.T, before, after string) {
		holdsCredential(before + after)
		if !holdsCredential(before + key + after) {
			t.Errorf("holdsCredential(%q) = false, want true", before+key+after)
		}
	})
}
