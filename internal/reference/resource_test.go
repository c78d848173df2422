package reference

import (
	"bufio"
	"encoding/json"
	"os"
	"testing"
)

// TestWrongAllows holds what the review by attack found: each resource must be
// refused or denied.
func TestWrongAllows(t *testing.T) {
	for _, c := range []struct {
		name, allowed, blocked string
		resources              []string
	}{
		{"escaped dot before a dot segment", "**", "http://H/v1/admin/**", []string{
			"http://H/v1/admin/%2e/../users", "HTTP://h/v1/admin/%2e/../users", "http://u@H/v1/admin/%2e/../users",
			"http://H/%761/admin/%2e/../users", "http://H:80/v1//admin/users", "http://h./v1/admin/x",
			`http://H/v1\admin/users`, "http://H/v1/x/..;a=b/admin/users", "http://H/v1/admin;x/users",
			"http://H/v1/x/%2e%2e/admin/users", "http://H/v1%2Fadmin/users", "http://H/v1/admin/x?y=1",
			`http://H\v1/admin/x`, `http://H\@x/../v1/admin/x`,
		}},
		{"over ssh", "**", "ssh://H/v1/admin/**", []string{"ssh://H/v1/admin/%2e/../users", "SSH://u@h:22/v1/admin/%252e/../x"}},
		{"over s3", "**", "s3://b/secret/**", []string{"s3://b/secret/%2e/../k", "s3://b/secre%74/k", "s3://b/data/%2e%2e/secret/k"}},
		{"plain paths with escapes", "**", "/srv/data/secret/**", []string{"/srv/data/%2e%2e/../secret/k", "/srv/data/x/%2e%2e/secret/k"}},
		{"plain paths", "**", "/srv/secret/**", []string{"/srv/data/%2e%2e/secret/k", "/srv//secret/k", "/srv/data/../secret/k", "file:///srv/secret/k"}},
		{"POSIX's backslashes", "/w/pub/**", "/nowhere", []string{`/w/pub\a\b\c/../../../etc/passwd`}},
		{"file's backslashes", "file:///w/pub/**", "/nowhere", []string{`file:///w/pub\a\b\c/../../../etc/passwd`}},
		{"names' backslashes", "w/pub/**", "/nowhere", []string{`w/pub\a\b\c/../../../etc/passwd`}},
		{"mail lists allowed", "mailto:*@customers.example", "/nowhere", []string{
			"mailto:s@stranger.example,c@customers.example", "mailto:s@stranger.example;c@customers.example",
			"mailto:s@stranger.example%2Cc@customers.example", "mailto:c@customers.example?cc=s@stranger.example",
			"mailto:c@customers.example?to=s@stranger.example", "mailto:c@customers.example?CC=s%40stranger.example",
			"mailto:s@stranger.example c@customers.example", "mailto:s@stranger.example%20c@customers.example",
		}},
		{"mail lists blocked", "**", "mailto:*@rival.example", []string{
			"mailto:c@customers.example,x@rival.example", "mailto:X@RIVAL.example", "MAILTO:x@rival.example", "x@rival.example",
			"mailto:c@customers.example?bcc=x@rival.example", "Words <x@rival.example>", "mailto://x@rival.example", "to x@rival.example",
			"mailto:x%40rival.example",
		}},
		{"numbers", "sms:+1555*", "/nowhere", []string{"sms:+1555123,+1900123", "sms:+1555123;+1900123", "sms:+1555123%2C+1900123"}},
		{"urn lists", "urn:customer:*", "/nowhere", []string{"urn:customer:a,urn:stranger:b", "urn:customer:a;urn:stranger:b", "urn:customer:a%2Curn:stranger:b", "urn:customer:a urn:stranger:b", "urn:customer:a?cc=urn:stranger:b"}},
		{"the host", "https://*.example.com/**", "https://api.example.co.uk/**", []string{
			"https://api.example.co%2euk/x", `https://api.example.com\.evil.com/x`, `https://api.example.com\@evil.com/x`, "https://api.example.co.uk./x",
		}},
		{"capital sharp s", "**", "https://strasse.example/**", []string{"https://straẞe.example/x", "https://straße.example/x"}},
		{"the other sharp s", "**", "https://straße.example/**", []string{"https://straẞe.example/x", "https://STRASSE.example/x", "https://xn--strae-oqa.example/x"}},
		{"a query behind a blocked path", "**", "https://h/admin", []string{"https://h/admin?x=1", "https://h/admin/?x=1", "https://h/admin#x", "https://h/admin;x"}},
		{"addresses of numbers", "**", "http://127.0.0.1/**", []string{"http://2130706433/x", "http://0x7f.1/x", "http://0177.0.0.1/", "http://[::ffff:127.0.0.1]/x", "http://１２７.0.0.1/"}},
		{"Windows", "**", `C:\secret\**`, []string{`c:\Secret\x`, `C:/secret/x`, `\\?\C:\secret\x`, `C:\a\..\secret.\x`, `C:\secret::$DATA\x`, "file:///C:/secret/x", "file:///c|/secret/x"}},
		{"shares", "**", `\\fs\share\**`, []string{`\\fs\share\x`, `//FS/share/x`, `\\?\UNC\fs\share\x`, "file://fs/share/x", "file:////fs/share/x"}},
		{"a name's backslashes as slashes", "**", "//fs/share/a/*", []string{`//fs/./share\a/b`, `//fs\share/./a\b`}},
		{"a whole scheme", "**", "https://**", []string{"https://h/x", "HTTPS://h/x"}},
		{"an address in a name", "**", "*@rival.example", []string{"bob@rival.exa%6dple/"}},
		{"NFKC", "**", "/srv/secret/**", []string{"/srv/ｓecret/x", "/srv/%EF%BD%93ecret/x", "/srv／secret/x"}},
		{"globs across forms", "**", "**/secret/**", []string{"https://h/a/%73ecret/x", "/a/secret/x", "s3://b/a/secret/x", "https://h/secret;x=1/y"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, raw := range c.resources {
				if decide(t, c.allowed, c.blocked, raw) {
					t.Errorf("allow %s, block %s: %s passes", c.allowed, c.blocked, raw)
				}
			}
		})
	}
}

// decide reports whether a resource passes; one that is refused does not.
func decide(t *testing.T, allowed, blocked, raw string) bool {
	t.Helper()
	r, err := Read(raw)
	if err != nil {
		return false
	}
	if blocked != "" {
		if _, ok := Blocked(pattern(t, blocked), r); ok {
			return false
		}
	}
	return Allowed([]*Pattern{pattern(t, allowed)}, r)
}

func pattern(t *testing.T, s string) *Pattern {
	t.Helper()
	p, err := ReadPattern(s)
	if err != nil {
		t.Fatalf("ReadPattern(%q): %v", s, err)
	}
	return p
}

// TestTriples holds what a careful author writes: what passes, what does not.
func TestTriples(t *testing.T) {
	for _, c := range []struct {
		allowed     string
		passes, not []string
	}{
		{"/srv/my%20docs/*", []string{"/srv/my%20docs/a"}, []string{"/srv/other/a", "/srv/my%20docs/a/b"}},
		{"//fs/share/**", []string{"//fs/share/x/y"}, []string{"//fs/other/x", "/fs/share/x", "//fs/share/../../other/x"}},
		{"arn:aws:s3:::prod/**", []string{"arn:aws:s3:::prod/a/b"}, []string{"arn:aws:s3:::dev/a", "arn:aws:s3:::prod/../dev/a"}},
		{"postgres://db/**", []string{"postgres://db/orders", "postgres://u@DB:5432/orders", "postgres://db/orders?sslmode=require"}, []string{"postgres://db2/orders", "postgres://db,evil/orders"}},
		{"*@customers.example", []string{"alice@customers.example", "mailto:alice@customers.example", "Alice <alice@customers.example>", "a@CUSTOMERS.example,b@customers.example"}, []string{"a@other.example", "a@other.example,b@customers.example", "a@b@customers.example"}},
		{"s3://bucket/a b/**", []string{"s3://bucket/a b/c", "s3://bucket/a%20b/c"}, []string{"s3://bucket/ab/c", "s3://other/a b/c"}},
		{"https://api.example.com/v1/*", []string{"https://api.example.com/v1/users", "HTTPS://API.example.com:443/v1/users", "https://api.example.com/v1/users?x=1", "https://api.example.com/v1/caf%C3%A9"}, []string{"https://api.example.com/v1/users?next=/home", "https://api.example.com/v1/a/b", "https://api.example.com/v1/a%2Fb", "http://api.example.com/v1/users", "https://api.example.com/v1/../v2"}},
		{"https://api.example.com/v1/search?q=*", []string{"https://api.example.com/v1/search?q=a%20b", "https://api.example.com/v1/search?q=a%26b"}, []string{"https://api.example.com/v1/search"}},
		{"https://**", []string{"https://h/x/y", "https://h/"}, []string{"http://h/x"}},
		{"http*://api.example/**", []string{"http://api.example/x", "https://API.example/x"}, []string{"ftp://api.example/x"}},
		{"{http,https}://api.example/**", []string{"http://api.example/x", "https://API.example/x"}, []string{"ftp://api.example/x"}},
		{"terraform://module.vpc.aws_subnet.private[0]", []string{"terraform://module.vpc.aws_subnet.private[0]", "terraform://module.vpc.aws_subnet.private0"}, nil},
		{"[dbo].[Orders]", []string{"[dbo].[Orders]"}, []string{"[dbo].[Users]"}},
		{"/v1/users/{id}", []string{"/v1/users/{id}", "/v1/users/id"}, []string{"/v1/users/x"}},
		{`HKLM\\**`, []string{`HKLM\Software\Foo`}, []string{"HKLM/Software"}},
		{"src/**", []string{"src/main.go", "src/a/../main.go"}, []string{`src\main.go`, "src/../main.go"}},
		{"../sibling/*", []string{"../sibling/file.txt"}, []string{"../other/file.txt"}},
		{"file:///etc/**", []string{"file:///etc/hosts", "file://localhost/etc/hosts"}, []string{"file:///etc/../x", "file://h/etc/hosts"}},
		{`C:\Users\alice\*`, []string{`C:\Users\alice\report.xlsx`, `C:/Users/alice/x`}, []string{`C:\Users\bob\x`, `C:\Users\alice\..\bob\x`}},
		{"mongodb://h1,h2/**", []string{"mongodb://h1:27017,H2:27017/app?replicaSet=rs0"}, []string{"mongodb://h1,h3/app"}},
		{"tel:+1555*", []string{"tel:+1-555-123"}, []string{"tel:+1900"}},
		{"kafka:orders.*", []string{"kafka:orders.v1"}, []string{"kafka:orders.v1,kafka:x"}},
		{"**", []string{"a@b.example", "https://h/x", "x", `C:\x`, "file:///x", "s3://b/k"}, nil},
		{"mailto:**", []string{"mailto:a@b.example", "a@b.example"}, []string{"sms:+1555", "tel:+1555"}},
		{"alice@b.example", []string{"mailto:alice@b.example"}, []string{"mailto:bob@b.example"}},
		{"mailto:bob@b.example", []string{"bob@b.example"}, []string{"alice@b.example"}},
		{"http://[::1]:8080/**", []string{"http://[::1]:8080/x", "http://[0:0::1]:8080/"}, []string{"http://[::2]:8080/"}},
		{"https://*.münchen.example/*", []string{"https://a.xn--mnchen-3ya.example/x", "https://a.MÜNCHEN.example/x"}, []string{"https://a.muenchen.example/x"}},
	} {
		for _, raw := range c.passes {
			if !decide(t, c.allowed, "", raw) {
				t.Errorf("allow %s: %s does not pass", c.allowed, raw)
			}
		}
		for _, raw := range c.not {
			if decide(t, c.allowed, "", raw) {
				t.Errorf("allow %s: %s passes", c.allowed, raw)
			}
		}
	}
}

// TestRefused holds resources.md, 1 and 2: what has no single meaning.
func TestRefused(t *testing.T) {
	for _, raw := range []string{"", " a", "a ", "a\tb", "a\u200bb", "a\u200db", "\u202ea", "http:/h/x", "http:///h/x", `http:\\h\x`,
		"https://api.example.co%2euk/x", `https://api.example.com\.evil.com/x`, "https://h/%FF", "https://h/%2541", "https://h/%00",
		"https://example.com/tab%09tab", "s3://b/%00", "file:///x%0a", "https://h:65536/", "https://a..b/", "https:///x", "https://a b/", "https://h:8o/"} {
		if _, err := Read(raw); err == nil {
			t.Errorf("Read(%q) is not refused", raw)
		}
	}
	for _, p := range []string{"a[", "{a", "a/../b", "https://h/a/%2e%2e/b", "https://a%2eb/**", "/..", "https://m*ünchen.example/**"} {
		if _, err := ReadPattern(p); err == nil {
			t.Errorf("ReadPattern(%q) is not refused", p)
		}
	}
}

// TestOrdinary holds that no ordinary identifier is refused but by name, and
// that it is within ** and within the pattern that quotes it.
func TestOrdinary(t *testing.T) {
	named := map[string]bool{"https://example.com/tab%09tab": true} // an escaped control in a URL's path
	f, err := os.Open("testdata/ordinary.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	everything := pattern(t, "**")
	n := 0
	for s := bufio.NewScanner(f); s.Scan(); n++ {
		var row struct{ Resource string }
		if err := json.Unmarshal(s.Bytes(), &row); err != nil {
			t.Fatal(err)
		}
		r, err := Read(row.Resource)
		if (err != nil) != named[row.Resource] {
			t.Errorf("Read(%q) = %v", row.Resource, err)
		}
		if err != nil {
			continue
		}
		if by, ok := Outside([]*Pattern{everything}, r); ok {
			t.Errorf("** does not allow %q: %s", row.Resource, by)
		}
		p, err := ReadPattern(row.Resource)
		if err != nil {
			t.Logf("ReadPattern(%q): %v", row.Resource, err)
			continue
		}
		if by, ok := Outside([]*Pattern{p}, r); ok {
			t.Errorf("%q does not allow itself: %s", row.Resource, by)
		}
		if _, ok := Blocked(p, r); !ok {
			t.Errorf("%q does not block itself", row.Resource)
		}
	}
	if n < 200 {
		t.Errorf("only %d identifiers", n)
	}
}
