package scrub

import (
	"encoding/base64"
	"encoding/hex"
	"strings"
	"testing"

	"writ.example/writ/internal/scrub/scrubtest"
)

// encoders has the encodings in which a text may occur in headers, environments and
// dumps.
var encoders = map[string]func(string) string{
	"base64":          func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
	"unpadded base64": func(s string) string { return base64.RawStdEncoding.EncodeToString([]byte(s)) },
	"base64url":       func(s string) string { return base64.URLEncoding.EncodeToString([]byte(s)) },
	"raw base64url":   func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) },
	"base64 in lines": func(s string) string { return lines(base64.StdEncoding.EncodeToString([]byte(s)), 76, "\r\n") },
	"hex":             func(s string) string { return hex.EncodeToString([]byte(s)) },
	"upper hex":       func(s string) string { return strings.ToUpper(hex.EncodeToString([]byte(s))) },
	"hex in lines":    func(s string) string { return lines(hex.EncodeToString([]byte(s)), 60, "\n") },
}

func lines(s string, width int, end string) string {
	var b strings.Builder
	for len(s) > width {
		b.WriteString(s[:width] + end)
		s = s[width:]
	}
	return b.String() + s
}

func TestText_Encoded(t *testing.T) {
	s := newScrubber(t)
	encode := base64.StdEncoding.EncodeToString
	token := "gh" + "p_9fKq2LmX7wZb4Rt8Yv1Nc6Hd3Jg5Ps0Aq2We"
	for text, want := range map[string]string{
		"Basic dXNlcjpwYXNzd29yZA==":                          "Basic [redacted:authorization-header]",
		"basic dTpw":                                          "basic [redacted:authorization-header]",
		"basic research":                                      "basic research",
		"basic authorization of bots":                         "basic authorization of bots",
		"a " + encode([]byte(token)) + " b":                   "a [redacted:github-pat] b",
		"bot-" + encode([]byte(token)) + "-1":                 "bo[redacted:github-pat]-1",
		"/v1/" + encode([]byte(token)) + "/x":                 "/v1/[redacted:github-pat]/x",
		"0x" + hex.EncodeToString([]byte(token)):              "0x[redacted:github-pat]",
		encode([]byte("\x00\x01\xff" + token + "\x00")):       "AAH/[redacted:github-pat]A=",
		encode([]byte("\xff" + token + "\x00\xfe\xfe\xfe")):   "/[redacted:github-pat]A/v7+",
		encode([]byte(encode([]byte(token)))):                 encode([]byte(encode([]byte(token)))), // decoded once
		encode([]byte(strings.Repeat("no secret ", 99))):      encode([]byte(strings.Repeat("no secret ", 99))),
		encode([]byte(`{"after":"2026-11-21","id":4711}`)):    encode([]byte(`{"after":"2026-11-21","id":4711}`)),
		encode([]byte("ann%40corp.test, please")):             "[redacted:email-address]",
		strings.ReplaceAll(encode([]byte(token)), "=", "%3D"): "[redacted:github-pat]",
	} {
		got := s.Text(text)
		if got != want {
			t.Errorf("Text(%q) = %q, want %q", text, got, want)
		}
		if again := s.Text(got); again != got {
			t.Errorf("Text(%q) = %q: scrubbing twice differs from once", got, again)
		}
	}
}

func TestText_HidesEncodedCanaries(t *testing.T) {
	s := newTagger(t)
	for _, c := range scrubtest.Canaries(3) {
		for name, encode := range encoders {
			secret := encode(c.Value)
			for _, text := range []string{secret, "x " + secret + " y", "/v1/" + secret + "/x", "bot-" + secret + "-1", `"` + secret + `"`, "k=" + secret, "a" + secret} {
				if got := s.Text(text); strings.Contains(got, secret) || !strings.Contains(got, "[redacted:") {
					t.Errorf("%s in %s: Text(%q) = %q", c.Name, name, text, got)
				}
				if _, found := s.Search()("pattern", text); found == c.Somebody {
					t.Errorf("%s in %s: Search of %q found a secret = %t", c.Name, name, text, found)
				}
			}
			if got := s.Values(map[string]string{"note": secret})["note"]; strings.Contains(got, secret) {
				t.Errorf("%s in %s: Values keep %q", c.Name, name, got)
			}
			raw := "https://" + secret + ".example/x?y=" + secret
			if got := s.Resource(raw, strings.ToLower(raw)); strings.Contains(got, strings.ToLower(secret)) {
				t.Errorf("%s in %s: Resource(%q) = %q", c.Name, name, raw, got)
			}
		}
	}
}

// TestText_BoundsItsWorkOnEncodedText checks that a text without a secret stays, however
// long it is, and that a text that takes too much work is replaced.
func TestText_BoundsItsWorkOnEncodedText(t *testing.T) {
	s := newScrubber(t)
	for name, encode := range encoders {
		size := 64 << 10
		if strings.Contains(name, "hex") {
			size = 8 << 10 // digits could be a card number, for which not more is read
		}
		text := encode(strings.Repeat("an ordinary sentence, ", size/22))
		if got := s.Text(text); got != text {
			t.Errorf("Text of 64 KB in %s = %.60q…, want it unchanged", name, got)
		}
		text = encode(strings.Repeat("api_key = facebook datadog ", 64<<10/27))
		if got, want := s.Text(text), redacted(KindUnread, ""); got != want && got != want+"\n" {
			t.Errorf("Text of 64 KB of keywords in %s = %.60q…, want %s", name, got, want)
		}
	}
}

// FuzzEncoded checks that a secret that is found in a plain text is also found after the
// text is encoded.
func FuzzEncoded(f *testing.F) {
	s := newScrubber(f)
	for _, c := range scrubtest.Canaries(2) {
		f.Add(c.Value)
	}
	f.Add("Authorization: Basic dXNlcjpwYXNzd29yZA==")
	f.Fuzz(func(t *testing.T, plain string) {
		if len(plain) < asciiRun || strings.ContainsAny(plain, ">?~") {
			return
		}
		for i := range len(plain) {
			if !printable[plain[i]] {
				return
			}
		}
		_, want := s.Find(plain)
		for name, encode := range encoders {
			text := "see: " + encode(plain) + " there"
			if _, got := s.Find(text); want && !got {
				t.Errorf("Find(%q) found nothing, but it does in %q (%s)", text, plain, name)
			}
			if again := s.Text(s.Text(text)); again != s.Text(text) {
				t.Errorf("Text(%q) = %q: scrubbing twice differs from once", s.Text(text), again)
			}
		}
	})
}
