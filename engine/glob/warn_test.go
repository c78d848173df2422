package glob

import (
	"strings"
	"testing"

	"writ.example/writ/engine/resource"
	"writ.example/writ/internal/must"
)

// TestDecision_Resources_Warnings checks the warnings for patterns that can match hardly any
// resource, such as https://api.example.com, *.example.com and /etc. A fragment or user info also
// gives a warning, because no reading keeps it.
func TestDecision_Resources_Warnings(t *testing.T) {
	for pattern, want := range map[string]string{
		"https://api.example.com":         "https://api.example.com/**",
		"https://api.example.com/":        "https://api.example.com/**",
		"*.example.com":                   "https://*.example.com/**",
		"/etc":                            "/etc/**",
		"https://user@api.example.com/**": "user info",
		"https://api.example.com/v1/#top": "fragment",
		"https://api.example.com/**":      "",
		"https://**":                      "",
		"https://*.example.com/v1/*":      "",
		"/etc/**":                         "",
		"/etc/passwd":                     "",
		"/Makefile.am":                    "",
		"*@customers.example":             "",
		"s3://bucket/**":                  "",
		"postgres://db":                   "",
		"arn:aws:s3:::prod/**":            "",
		"**":                              "",
		"*.pdf":                           "",
		"*.pdf/x":                         "",
		"issue#12":                        "",
		"acme.example":                    "https://acme.example/**",
		"acme.example/":                   "https://acme.example/**",
		"api.acme.example/v1/**":          "https://api.acme.example/v1/**",
		"*.acme.com/v1/*":                 "https://*.acme.com/v1/*",
		"api.acme.com:8443/**":            "https://api.acme.com:8443/**",
		"{www,api}.acme.com":              "https://{www,api}.acme.com/**",
		"mailto:*":                        "mailto:**",
		"MailTo:support-*":                "mailto:**",
		"mailto:**":                       "",
		"mailto:*@acme.example":           "",
		"mailto:postmaster":               "",
		"ana@acme.example":                "",
		"public.orders":                   "",
		"report.pdf":                      "",
		"conf.d/**":                       "",
		"src/main.go":                     "",
		"com.acme.app/**":                 "",
		"ghcr.io/acme/app":                "",
		"registry.acme.example/app/**":    "",
		"acme.example/app:1.2":            "",
		"images.acme.com/app@sha256:12":   "",
		"urn:acme.example:7":              "",
	} {
		problem, instead := Warning(pattern, resource.ForAllow)
		got := problem + instead
		if (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("Warning(%q) = %q, want it to say %q", pattern, got, want)
		}
	}
	if problem, _ := Warning("mailto:*", resource.ForBlock); problem != "" {
		t.Errorf("Warning of mailto:* in a block list = %q, but it blocks every address", problem)
	}
}

// TestWarning_AllowsNothing asks the readers: an allowance of mailto: that is warned of holds for no address, and the
// patterns that the warnings advise hold.
func TestWarning_AllowsNothing(t *testing.T) {
	for pattern, want := range map[string]bool{
		"mailto:*": false, "mailto:ana*": false, "mailto:{ana,*}": false, "mailto:**": true, "mailto:*@acme.example": true,
	} {
		list := mustList(t, resource.ForAllow, pattern)
		holds := false
		for _, raw := range []string{"mailto:ana@acme.example", "ana@acme.example", "Ana <ana@acme.example>"} {
			r := must.Get(resource.Read(raw))(t)
			holds = holds || list.Holds(&r)
		}
		problem, _ := Warning(pattern, resource.ForAllow)
		if holds != want || (problem == "") != want {
			t.Errorf("%s allows an address: %t, and earns %q, want %t", pattern, holds, problem, want)
		}
	}
	for pattern, url := range map[string]string{
		"acme.example": "https://acme.example/x", "api.acme.example/v1/**": "https://api.acme.example/v1/x",
	} {
		r := must.Get(resource.Read(url))(t)
		_, instead := Warning(pattern, resource.ForAllow)
		if mustList(t, resource.ForAllow, pattern).Holds(&r) || !mustList(t, resource.ForAllow, strings.TrimPrefix(instead, "write ")).Holds(&r) {
			t.Errorf("%s: the advice is %q, want a pattern that allows %s", pattern, instead, url)
		}
	}
}
