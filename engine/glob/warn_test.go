package glob

import (
	"strings"
	"testing"
)

// TestDecision_Resources_Warnings checks that there is a warning for a pattern that can match
// hardly any resource (https://api.example.com, *.example.com, /etc). There is also one for a
// fragment or user info, because no reading keeps them.
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
	} {
		problem, instead := Warning(pattern)
		got := problem + instead
		if (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("Warning(%q) = %q, want it to say %q", pattern, got, want)
		}
	}
}
