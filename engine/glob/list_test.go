package glob

import (
	"testing"

	"writ/engine/resource"
)

// verdict is what a policy with one blocked and one allowed pattern says.
func verdict(t *testing.T, blocked, allowed, text string) string {
	t.Helper()
	r, err := resource.Read(text)
	if err != nil {
		return "refused"
	}
	if blocked != "" {
		l, err := Compile([]string{blocked}, resource.ForBlock)
		if err != nil {
			t.Fatalf("Compile(%q): %v", blocked, err)
		}
		if i, _ := l.FirstMatch(&r); i >= 0 {
			return "blocked"
		}
	}
	if allowed != "" {
		l, err := Compile([]string{allowed}, resource.ForAllow)
		if err != nil {
			t.Fatalf("Compile(%q): %v", allowed, err)
		}
		if !l.Holds(&r) {
			return "not allowed"
		}
	}
	return "passes"
}

// TestDecision_Resources_NoSpellingOfABlockedResourceMayPass holds the spellings
// that real programs were seen to read as what is blocked.
func TestDecision_Resources_NoSpellingOfABlockedResourceMayPass(t *testing.T) {
	const admin = "http://h.example/v1/admin/**"
	for _, test := range []struct{ blocked, text string }{
		{admin, "http://h.example/v1/admin/%2e/../users"},
		{admin, "HTTP://H.EXAMPLE:80/v1/admin/%2e/../users"},
		{admin, "http://u:p@h.example/v1/admin/%2E/../users"},
		{admin, "http://h.example//v1/admin/%2e/../users"},
		{admin, "http://h.example/v1/x/..%2fadmin/users"},
		{admin, "http://h.example/v1/%61dmin/users"},
		{admin, "http://h.example/v1/x/..;/admin/users"},
		{admin, "http://h.example/v1/admin;x=1/users"},
		{admin, `http://h.example/v1/x\..\admin\users`},
		{"http://h.example/v1/admin", "http://h.example/v1/admin?x=1"},
		{"http://h.example/v1/admin", "http://h.example/v1/admin/"},
		{"ssh://h.example/v1/admin/**", "ssh://h.example/v1/admin/%2e/../users"},
		{"s3://bucket/v1/admin/**", "s3://BUCKET/v1/admin/%2e/../users"},
		{"/srv/data/secret/**", "/srv/data/%2e%2e/../secret/k"},
		{"/srv/secret/**", "/srv/data/../secret/k"},
		{"/srv/secret/**", "/srv/%73ecret/k"},
		{"/srv/secret/**", "/srv/ｓecret/k"},
		{"//fs/share/**", `\\fs\share\x`},
		{"C:/Secret/**", `c:\secret\x`},
		{"C:/Secret/**", `\\?\C:\SECRET.\x`},
		{"C:/Secret/**", `C:\Secret\k::$DATA`},
		{"mailto:stranger@evil.example", "mailto:customer@ours.example,STRANGER@EVIL.example"},
		{"mailto:stranger@evil.example", "mailto:customer@ours.example;stranger@evil.example"},
		{"mailto:stranger@evil.example", "mailto:customer@ours.example%2Cstranger@evil.example"},
		{"mailto:stranger@evil.example", "mailto:customer@ours.example?cc=stranger@evil.example"},
		{"mailto:stranger@evil.example", "mailto:?to=stranger@evil.example"},
		{"*@evil.example", "Stranger <stranger@evil.example>"},
		{"file:///etc/passwd", "file:///etc/./passwd"},
		{"/etc/passwd", "file:/etc/passwd"},
		{"/etc/passwd", "file://localhost/etc/passwd"},
		{"mongodb://prod/**", "mongodb://dev,prod:27017/db"},
		{"https://xn--strae-oqa.example/**", "https://straße.example/x"},
		{"https://strasse.example/**", "https://straße.example/x"},
		{"https://strasse.example/**", "https://STRAẞE.example/x"},
		{"http://127.0.0.1/**", "http://0x7f.1/x"},
		{"http://127.0.0.1/**", "http://[::ffff:127.0.0.1]/x"},
	} {
		if got := verdict(t, test.blocked, "", test.text); got != "blocked" && got != "refused" {
			t.Errorf("blocked %s: %s %s", test.blocked, test.text, got)
		}
	}
}

// TestDecision_Resources_AnAllowanceHoldsForEveryReader holds what must not pass.
func TestDecision_Resources_AnAllowanceHoldsForEveryReader(t *testing.T) {
	for _, test := range []struct{ allowed, text, want string }{
		{"/w/pub/**", `/w/pub\a\b\c/../../../etc/passwd`, "not allowed"},
		{"file:///w/pub/**", `file:///w/pub\a\b\c/../../../etc/passwd`, "not allowed"},
		{"mailto:*@ours.example", "mailto:stranger@evil.example,customer@ours.example", "not allowed"},
		{"mailto:*@ours.example", "mailto:customer@ours.example?bcc=stranger@evil.example", "not allowed"},
		{"mailto:*@ours.example", "mailto:customer@ours.example", "passes"},
		{"*@customers.example", "mailto:customer@Customers.example", "passes"},
		{"*@customers.example", "customer@customers.example", "passes"},
		{"urn:x:*", "urn:x:a,urn:y:b", "not allowed"},
		{"urn:x:*", "urn:x:a", "passes"},
		{"sms:+49*", "sms:+49123,+1900", "not allowed"},
		{"tel:+49*", "tel:+49-30-1234", "passes"},
		{"https://api.example.co.uk/**", "https://api.example.co%2euk/x", "refused"},
		{"https://api.example.com/**", `https://api.example.com\.evil.com/x`, "refused"},
		{"https://b.example/**", `https://a.example\@b.example/x`, "refused"},
		{"https://api.example.com/v1/**", "https://api.example.com/v1/../admin", "not allowed"},
		{"https://api.example.com/v1/**", "https://api.example.com/v1/%2e%2e/admin", "not allowed"},
		{"https://api.example.com/v1/**", "https://api.example.com/v1/x%2f..%2f..%2fadmin", "not allowed"},
		{"https://API.example.com:443/%7Ea/*", "https://api.example.com/~a/b", "passes"},
		{"/srv/my%20docs/*", "/srv/my%20docs/a", "passes"},
		{"/srv/my docs/*", "/srv/my docs/a", "passes"},
		{"/srv/my%20docs/*", "/srv/my docs/a", "not allowed"},
		{"//fs/share/**", "//fs/share/a/b", "passes"},
		{"arn:aws:s3:::prod/**", "arn:aws:s3:::prod/a/b", "passes"},
		{"arn:aws:s3:::prod/**", "arn:aws:s3:::prod/../dev/b", "not allowed"},
		{"postgres://db/**", "postgres://u:p@db:5432/prod", "passes"},
		{"s3://bucket/a b/**", "s3://bucket/a%20b/c", "passes"},
		{"s3://bucket/a b/**", "s3://bucket/a b/c", "passes"},
		{"private[0]", "private[0]", "passes"},
		{"[dbo].[Orders]", "[dbo].[Orders]", "passes"},
		{"https://h.example/v1/users/{id}", "https://h.example/v1/users/{id}", "passes"},
		{"src/**", "src/main.go", "passes"},
		{"src/**", `src\main.go`, "not allowed"},
		{`C:\Users\*\docs`, `C:\Users\bob\docs`, "passes"},
		{"mongodb://h1,h2/**", "mongodb://h1,h2/db", "passes"},
		{"mongodb://h*/**", "mongodb://h1,evil/db", "not allowed"},
		{"jdbc:sqlserver://h:1433;*", "jdbc:sqlserver://h:1433;databaseName=x", "passes"},
		{"https://h.example/v1/*", "https://h.example/v1/?next=/home", "not allowed"},
		{"https://[2001:db8::1]/**", "https://[2001:DB8:0::1]:443/x", "passes"},
		{"**", "anything at all", "passes"},
		{"**", "https://h.example/a%2Fb?x", "passes"},
		{"**", `\\host\share\x`, "passes"},
		{"**", "mailto:a@b.example,c@d.example", "passes"},
		{"*://h.example/**", "https://h.example:443/x", "passes"},
		{"file:///srv/my%20docs/*", "file:///srv/my%20docs/a", "passes"},
	} {
		if got := verdict(t, "", test.allowed, test.text); got != test.want {
			r, _ := resource.Read(test.text)
			for i := range r.Len(resource.ForAllow) {
				t.Logf("  %+v", r.At(resource.ForAllow, i))
			}
			t.Errorf("allowed %s: %s %s, want %s", test.allowed, test.text, got, test.want)
		}
	}
}
