package console

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"
)

// TestAssets holds "one ES module under 25 kB" and "console assets under 120 kB".
func TestAssets(t *testing.T) {
	files, err := pages.ReadDir("web")
	if err != nil {
		t.Fatal(err)
	}
	sum := 0
	for _, f := range files {
		text, err := pages.ReadFile("web/" + f.Name())
		if err != nil {
			t.Fatal(err)
		}
		sum += len(text)
	}
	for _, name := range []string{"console.js", "console.css", "icon.svg"} {
		text, err := web.ReadFile("web/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if sum += len(text); name == "console.js" && len(text) > 25_000 {
			t.Errorf("%s has %d bytes, want at most 25,000", name, len(text))
		}
	}
	if sum > 120_000 {
		t.Errorf("the console's files have %d bytes, want at most 120,000", sum)
	}
}

func TestShort(t *testing.T) {
	for in, want := range map[string]string{
		"plain ä 漢 😀 <b>": "plain ä 漢 😀 <b>", "gpj.\u202eexe": `gpj.\u202eexe`, "a\nb": `a\u000ab`,
	} {
		if got := short(in); got != want {
			t.Errorf("short(%q) = %q, want %q", in, got, want)
		}
	}
	if got := short(strings.Repeat("漢", 70000)); got != strings.Repeat("漢", maxShort)+"…" {
		t.Errorf("short of a long text has %d bytes", len(got))
	}
}

func TestMoney(t *testing.T) {
	for want, c := range map[string]*cost{
		"": nil, "12.50 EUR": {1250, "EUR"}, "0.05 USD": {5, "USD"}, "500 JPY": {500, "JPY"}, "1.234 KWD": {1234, "KWD"},
		"0.00 EUR": {0, "EUR"}, "7 minor units of ???": {7, "???"},
	} {
		if got := money(c); got != want {
			t.Errorf("money(%+v) = %q, want %q", c, got, want)
		}
	}
}

func TestSeal(t *testing.T) {
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	ours, err := newSeal([]byte("secret"))
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := newSeal([]byte("other"))
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := ours.close(session{Credential: "k", Organization: "an organization", Expires: now.Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	if plain, err := base64.RawURLEncoding.DecodeString(sealed); err != nil || strings.Contains(string(plain), "an organization") {
		t.Errorf("a sealed session can be read, or its form is another one: %v", err)
	}
	if _, err := ours.close(session{Credential: strings.Repeat("x", 4000)}); err == nil {
		t.Error("a session that no cookie holds was sealed")
	}
	for _, c := range []struct {
		seal seal
		text string
		at   time.Time
		want error
	}{
		{ours, sealed, now, nil}, {ours, sealed, now.Add(time.Hour), errTimedOut}, {theirs, sealed, now, errNoSession},
		{ours, sealed[:len(sealed)-2], now, errNoSession}, {ours, "", now, errNoSession}, {ours, "AAAA", now, errNoSession},
	} {
		if _, err := c.seal.unseal(c.text, c.at); err != c.want { //nolint:errorlint // it is never wrapped
			t.Errorf("unseal(%.8s…) at %v = %v, want %v", c.text, c.at, err, c.want)
		}
	}
}

// FuzzBelow holds that no text leads out of the console.
func FuzzBelow(f *testing.F) {
	for _, s := range []string{"/console", "/console/x?y=z#w", "//evil", "/console/..", `/console\x`, "https://a/console", "/console/%2e%2e"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, next string) {
		to := below(next)
		path, _, _ := strings.Cut(to, "?")
		if path != "/console" && !strings.HasPrefix(path, "/console/") || strings.Contains(path, "//") || strings.Contains(path, "/..") ||
			strings.ContainsAny(to, "\\\r\n\t") {
			t.Errorf("below(%q) = %q", next, to)
		}
	})
}

func TestCompare(t *testing.T) {
	from := policyDoc{"version": 1.0, "allowed_action_types": []any{"a", "b"}, "currency": "EUR"}
	to := policyDoc{"version": 2.0, "allowed_action_types": []any{"b", "c"}, "max_cost_minor": 50000.0}
	var got strings.Builder
	for _, m := range compare(from, to) {
		got.WriteString(m.Name + ":")
		for _, l := range m.Lines {
			got.WriteString(" " + l.In + " " + l.Text)
		}
		got.WriteString("\n")
	}
	const want = "allowed_action_types: del a  b ins c\ncurrency: del EUR\nmax_cost_minor: ins 50000\nversion: del 1 ins 2\n"
	if got.String() != want {
		t.Errorf("compare = %s, want %s", got.String(), want)
	}
	for _, m := range compare(nil, to) {
		if m.Changed {
			t.Errorf("%s has changed without another version", m.Name)
		}
	}
}

// TestSuiteCase holds that a case names the policy and the rules that writ pull writes, and what the history did not keep.
func TestSuiteCase(t *testing.T) {
	got := suiteCase(&row{
		DecisionID: "d", IntentID: "i", PolicyID: "p", PolicyVersion: 3, AgentID: "a", ActionType: "x", Resource: "r",
		Decision: "deny", Reasons: []string{"cost.exceeded: it is"}, IssuedAt: "2026-11-21T10:00:00Z", LeftOut: []string{"metadata"},
	})
	const want = `# decided under version 3 of the policy; writ pull . writes both files
policy: "policies/p.yaml"
rules: rules.yaml
# not kept in the history: metadata
intents:
  "i": {"action_type":"x","agent_id":"a","issued_at":"2026-11-21T10:00:00Z","resource":"r"}
tests:
  - {"codes":["cost.exceeded"],"intent":"i","name":"as decided in d","now":"0001-01-01T00:00:00Z","want":"deny"}
`
	if got != want {
		t.Errorf("suiteCase = %s, want %s", got, want)
	}
}
