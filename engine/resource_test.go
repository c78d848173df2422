package engine

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func readings(r *Readings) (normal, all []string) {
	for i := range r.NormalLen() {
		normal = append(normal, r.NormalAt(i))
	}
	for i := range r.Len() {
		all = append(all, r.At(i))
	}
	return normal, all
}

// TestDecision_Resources_NormalFormIsWhatABrowserWouldRead also pins what is
// decided for resources that no browser reads.
func TestDecision_Resources_NormalFormIsWhatABrowserWouldRead(t *testing.T) {
	for _, tt := range []struct{ raw, want string }{
		{"https://example.com", "https://example.com/"},
		{"HTTPS://EXAMPLE.com:443", "https://example.com/"},
		{"https://example.com?q", "https://example.com/?q"},
		{"https://example.com#f", "https://example.com/#f"},
		{"https://example.com:8443/", "https://example.com:8443/"},
		{"https://example.com:0008443/", "https://example.com:8443/"},
		{"http://example.com:443/", "http://example.com:443/"},
		{"http://example.com:80/", "http://example.com/"},
		{"ws://h:80/", "ws://h/"},
		{"wss://h:443/", "wss://h/"},
		{"ftp://h:21/", "ftp://h/"},
		{"http://h/a/b/../c/./d/", "http://h/a/c/d/"},
		{"http://h/a/..", "http://h/"},
		{"http://h/.hidden", "http://h/.hidden"},
		{"http://h/...", "http://h/..."},
		{"http://h/a//b", "http://h/a/b"},
		{"http://h/a b", "http://h/a%20b"},
		{"http://h/%7euser/%2d%2E%5f", "http://h/~user/-._"},
		{"http://h/%c3%a9", "http://h/%C3%A9"},
		{"http://h/é", "http://h/%C3%A9"},
		{"http://h/e\u0301", "http://h/e%CC%81"},
		{"http://h/\U0001F469\u200D\U0001F4BB", "http://h/%F0%9F%91%A9%E2%80%8D%F0%9F%92%BB"},
		{"http://h/a%2fb%5cc", "http://h/a%2Fb%5Cc"},
		{"http://h/100%25", "http://h/100%25"},
		{"http://h/%25zz", "http://h/%25zz"},
		{"http://h/a|b[c]", "http://h/a|b[c]"},
		{`http://h/"<>^{}` + "`", "http://h/%22%3C%3E%5E%7B%7D%60"},
		{`http://h/?"<>'^{}` + "`", "http://h/?%22%3C%3E%27^{}`"},
		{`foo://h/?'`, "foo://h/?'"},
		{`http://h/#"<>^{}` + "`", "http://h/#%22%3C%3E^{}%60"},
		{"http://h/?a=../..//b", "http://h/?a=../..//b"},
		{"http://h/??", "http://h/??"},
		{"http://h/?#", "http://h/"},
		{`http://h/a\b?c\d`, `http://h/a/b?c\d`},
		{"http://2130706433/", "http://127.0.0.1/"},
		{"http://0x7f.1/", "http://127.0.0.1/"},
		{"http://0177.0.0.1/", "http://127.0.0.1/"},
		{"http://0x/", "http://0.0.0.0/"},
		{"http://1.2.3.4.example/", "http://1.2.3.4.example/"},
		{"http://[::1]:8080/", "http://[::1]:8080/"},
		{"http://[0:0::0001]/", "http://[::1]/"},
		{"http://[2001:DB8:0:0:1:0:0:1]/", "http://[2001:db8::1:0:0:1]/"},
		{"http://[::ffff:1.2.3.4]/", "http://1.2.3.4/"},
		{"http://faß.de/", "http://xn--fa-hia.de/"},
		{"http://a_b.example/", "http://a_b.example/"},
		{"http://r3---sn-x.example/", "http://r3---sn-x.example/"},
		{"http://localhost/", "http://localhost/"},
		{"file:///etc/passwd", "file:///etc/passwd"},
		{"file:/etc/passwd", "file:///etc/passwd"},
		{"file:etc/passwd", "file:///etc/passwd"},
		{"file://localhost/etc", "file:///etc"},
		{"file://Server/share", "file://server/share"},
		{"file:///C|/x/../../y", "file:///c:/y"},
		{"s3://Bucket/Key", "s3://bucket/Key"},
		{"s3://bucket", "s3://bucket/"},
		{"s3://2024/key", "s3://2024/key"},
		{"foo:///x", "foo:///x"},
		{"foo:/x//y", "foo:/x/y"},
		{"postgres://user:pw@DB:5432/db?sslmode=off", "postgres://db/db?sslmode=off"},
		{"mongodb://u:p@A:27017,B:27018/db", "mongodb://a,b:27018/db"},
		{"redis://0x7f.1:6379/0", "redis://127.0.0.1/0"},
		{"jdbc:postgresql://User:pw@Host:5432/db", "jdbc:postgresql://host/db"},
		{"view-source:HTTPS:Example.com", "view-source:https://example.com/"},
		{"git@GitHub.com:Org/repo", "git@github.com:Org/repo"},
		{"mailto:Bob@Example.COM", "mailto:Bob@example.com"},
		{"bob@bücher.example", "bob@xn--bcher-kva.example"},
		{"npm:react@^18.2.0", "npm:react@%5E18.2.0"},
		{"user@Main", "user@Main"},
		{"URN:ISBN:0451450523", "urn:ISBN:0451450523"},
		{"arn:aws:s3:::bucket/Key", "arn:aws:s3:::bucket/Key"},
		{"Repo:Main", "repo:Main"},
		{"a:B:HTTPS:H", "a:b:https://h/"},
		{"JavaScript:alert(1)", "javascript:alert(1)"},
		{"Example.com:8080/x", "example.com:8080/x"},
		{`C:\Users\x`, "c:/Users/x"},
		{"c:/Users/../x", "c:/x"},
		{"prod/db/users", "prod/db/users"},
		{`prod\db\users`, "prod/db/users"},
		{"prod//db/./users/../x", "prod/db/x"},
		{"./a", "a"},
		{".", "."},
		{"a/..", "."},
		{"a/b/..", "a/"},
		{"../a", "a"},
		{"../../.git", ".git"},
		{"..", "."},
		{"/..", "/"},
		{"/", "/"},
		{"/a?b", "/a?b"},
		{"a b", "a%20b"},
		{"table users", "table%20users"},
		{"été", "%C3%A9t%C3%A9"},
	} {
		t.Run(tt.raw, func(t *testing.T) {
			r, err := ReadResource(tt.raw)
			if err != nil {
				t.Fatalf("ReadResource(%q): %v", tt.raw, err)
			}
			if got := r.Normal(); got != tt.want {
				t.Errorf("ReadResource(%q).Normal() = %q, want %q", tt.raw, got, tt.want)
			}
			again, err := ReadResource(tt.want)
			if err != nil || again.Normal() != tt.want {
				t.Errorf("ReadResource(%q).Normal() = %q, %v, want itself", tt.want, again.Normal(), err)
			}
		})
	}
}

func TestDecision_Resources_SeveralReadings(t *testing.T) {
	for _, tt := range []struct {
		raw         string
		normal, all []string
	}{
		{"https://example.com/a", []string{"https://example.com/a"}, []string{"https://example.com/a"}},
		{"prod/db", []string{"prod/db"}, []string{"prod/db"}},
		{
			"https://EXAMPLE.com/a",
			[]string{"https://example.com/a"},
			[]string{"https://EXAMPLE.com/a", "https://example.com/a"},
		},
		{
			"https://h/a%2F..%2Fb",
			[]string{"https://h/a%2F..%2Fb", "https://h/b"},
			[]string{"https://h/a%2F..%2Fb", "https://h/b"},
		},
		{
			"a%5Cb",
			[]string{"a%5Cb", "a/b"},
			[]string{"a%5Cb", "a/b"},
		},
		{
			"http://h/a%2fb#c",
			[]string{"http://h/a%2Fb#c", "http://h/a%2Fb", "http://h/a/b#c", "http://h/a/b"},
			[]string{"http://h/a%2fb#c", "http://h/a%2fb", "http://h/a%2Fb#c", "http://h/a%2Fb", "http://h/a/b#c", "http://h/a/b"},
		},
		{
			"../data/x",
			[]string{"data/x", "../data/x"},
			[]string{"../data/x", "data/x"},
		},
		{
			"http://h/a%20b%3Fc",
			[]string{"http://h/a%20b%3Fc"},
			[]string{"http://h/a%20b%3Fc", "http://h/a b?c"},
		},
		{
			"http://xn--bcher-kva.example/%C3%A9%40",
			[]string{"http://xn--bcher-kva.example/%C3%A9%40"},
			[]string{"http://xn--bcher-kva.example/%C3%A9%40", "http://bücher.example/é@", "http://xn--bcher-kva.example/%C3%A9@"},
		},
		{"issue#12", []string{"issue#12"}, []string{"issue#12"}},
	} {
		t.Run(tt.raw, func(t *testing.T) {
			r, err := ReadResource(tt.raw)
			if err != nil {
				t.Fatalf("ReadResource(%q): %v", tt.raw, err)
			}
			normal, all := readings(&r)
			if diff := cmp.Diff(tt.normal, normal); diff != "" {
				t.Errorf("ReadResource(%q) normalised readings (-want +got):\n%s", tt.raw, diff)
			}
			if diff := cmp.Diff(tt.all, all); diff != "" {
				t.Errorf("ReadResource(%q) readings (-want +got):\n%s", tt.raw, diff)
			}
		})
	}
}

func TestDecision_Resources_WhatHasNoSingleMeaningIsNotEvaluated(t *testing.T) {
	for name, raw := range map[string]string{
		"empty":                        "",
		"too long":                     strings.Repeat("a", MaxResourceLength+1),
		"NUL":                          "a\x00b",
		"control character":            "a\x1fb",
		"C1 control character":         "a\u0085b",
		"escaped control character":    "a%1fb",
		"leading white space":          "\u2003a",
		"trailing white space":         "a\t",
		"only white space":             " ",
		"undecodable escape":           "a%2",
		"undecodable UTF-8 escape":     "a%ff",
		"truncated UTF-8 escape":       "a%e2%82",
		"escaped surrogate":            "a%ed%a0%80",
		"invalid UTF-8":                "a\xff",
		"double encoding":              "a%252e",
		"double encoding in a query":   "https://h/?u=%252F",
		"double encoding in a user":    "https://a%2540b@h/",
		"line separator":               "a\u2028b",
		"bidirectional override":       "a\u202eb",
		"invisible tag":                "a\U000e0061b",
		"joiner after ASCII":           "a\u200db",
		"byte order mark in a path":    "a\ufeffb",
		"no host":                      "https://",
		"only user info":               "https://user@",
		"only dots in a host":          "https://../",
		".. after doubled slashes":     "https://h/secret//../admin/x",
		"… escaped":                    "https://h/secret//%2e%2e/admin/x",
		"… further on":                 "https://h/secret//a/../../admin/x",
		"… in a path":                  "secret//../admin/x",
		"… with encoded slashes":       "https://h/secret/%2F../admin/x",
		"port without host":            "https://:443/",
		"port that is no number":       "https://h:http/",
		"port beyond 65535":            "https://h:65536/",
		"space in a host":              "https://a b/",
		"escaped slash in a host":      "https://a%2fb/",
		"escaped at sign in a host":    "https://a%40b/",
		"open IPv6":                    "https://[::1/",
		"IPv6 zone":                    "https://[fe80::1%25eth0]/",
		"number that is no address":    "https://256.256.256.256/",
		"host that ends in a number":   "https://example.1/",
		"invalid Punycode":             "https://xn--zzzzzz99999/",
		"mixed-direction label":        "https://a\u05d0.example/",
		"user info in a file URL":      "file://user@host/x",
		"backslash in a name's host":   `s3://bucket\key`,
		"backslash before a host":      `s3:\\bucket\key`,
		"backslash and second host":    `https://a\@b/`,
		"two at signs":                 "https://a@b@c/",
		"host or path":                 "//host/path",
		"UNC path":                     `\\server\share`,
		"path that becomes a URL":      "x/../https://h/",
		"slashes that become a URL":    "x%2F..%2Fhttps:%2F%2Fh",
		"dot segment with parameter":   "/a/..;/b",
		"dot segments after a query":   "/a?/../b",
		"URLs nested without an end":   "a:b:c:d:e:f:https://h/",
		"nested URL with a bad host":   "jdbc:postgres://a b/",
		"domain that cannot be mapped": "a@\u05d0a.\u05d0",
	} {
		t.Run(name, func(t *testing.T) {
			r, err := ReadResource(raw)
			var refused *ResourceError
			if !errors.As(err, &refused) {
				t.Fatalf("ReadResource(%q) = %q, %v, want a ResourceError", raw, r.Normal(), err)
			}
		})
	}
}

func TestDecision_Audit_ProjectionHasNoUserInfoQueryOrFragment(t *testing.T) {
	for _, tt := range []struct{ raw, want string }{
		{"https://example.com/a", "https://example.com/a"},
		{"https://user:pw@example.com/a?token=x#y", "https://example.com/a"},
		{"https://example.com/a#y?z", "https://example.com/a"},
		{"postgres://user:pw@db/x?password=y", "postgres://db/x"},
		{"jdbc:postgresql://user:pw@db/x?password=y", "jdbc:postgresql://db/x"},
		{"user:pw@db/x", "db/x"},
		{"mailto:bob@example.com?subject=x", "mailto:bob@example.com"},
		{"bob@example.com", "bob@example.com"},
		{"git@github.com:org/repo", "git@github.com:org/repo"},
		{"a/b?token=x", "a/b"},
		{"repo:main", "repo:main"},
		{"npm:left-pad@1.3.0", "npm:left-pad@1.3.0"},
		{"npm:left-pad@latest", "npm:left-pad@latest"},
		{"npm:@scope/pkg@1.2.3-rc.1+b", "npm:@scope/pkg@1.2.3-rc.1+b"},
		{"alpine:3.19@sha256:0a1b", "alpine:3.19@sha256:0a1b"},
		{"docker.io/library/alpine@sha256:0a1b", "docker.io/library/alpine@sha256:0a1b"},
		{"scott:tiger@10.1.2.3/x", "10.1.2.3/x"},
		{"scott:tiger@v1x/x", "v1x/x"},
		{"scott:1@2@db", "db"},
		{"scott:tiger@beta", "beta"},
	} {
		t.Run(tt.raw, func(t *testing.T) {
			r, err := ReadResource(tt.raw)
			if err != nil {
				t.Fatalf("ReadResource(%q): %v", tt.raw, err)
			}
			if got := r.Projection(); got != tt.want {
				t.Errorf("ReadResource(%q).Projection() = %q, want %q", tt.raw, got, tt.want)
			}
		})
	}
}

func TestReadResource_PlainPathAgreesWithLongWay(t *testing.T) {
	for _, raw := range plainResources {
		if !isPlain(raw) {
			t.Errorf("isPlain(%q) = false, want true", raw)
		}
		r, err := readAll(raw)
		if err != nil {
			t.Errorf("readAll(%q): %v", raw, err)
			continue
		}
		if normal, all := readings(&r); len(normal) != 1 || len(all) != 1 || normal[0] != raw {
			t.Errorf("readAll(%q) = %q and %q, want itself alone", raw, normal, all)
		}
	}
}

var plainResources = []string{
	"https://api.example.com/v1/charges/ch_123",
	"https://api.example.com/v1/search?q=a&b=../c",
	"http://a.b/",
	"http://localhost:3820/v1",
	"prod/db/users",
	"/etc/passwd",
	"deploy-target",
}

func TestReadResource_DoesNotAllocateOnPlainResources(t *testing.T) {
	for _, raw := range plainResources {
		if n := testing.AllocsPerRun(100, func() {
			if _, err := ReadResource(raw); err != nil {
				t.Error(err)
			}
		}); n != 0 {
			t.Errorf("ReadResource(%q) allocates %v times, want 0", raw, n)
		}
	}
}

// What agents name every day has a meaning: none of it may be refused for looking
// like an attempt to hide something.
func TestReadResource_OrdinaryNamesAreRead(t *testing.T) {
	for _, raw := range []string{
		"https://web.archive.org/web/2020/https://x.example/y",
		"https://b.s3.amazonaws.com/a%20b/c+d?X-Amz-Credential=AKIA%2F2026%2Fus-east-1%2Fs3%2Faws4_request&X-Amz-Signature=00",
		"https://example.com/a..b/c...d/..hidden/x..", "https://example.com/login?next=../admin/x", "https://example.com/x?q=100%25",
		"https://github.com/a/b/compare/main...dev", "https://api.example.com/v1/projects/group%2Fproject/issues",
		"https://example.com/a;v=1/b;c=2", "https://example.com/a:b@c", "https://example.com/#/route/../x", "https://[::1]:8080/x",
		"git@github.com:org/repo.git", "ssh://git@github.com:22/org/repo.git", "git+https://github.com/o/r.git@v1#egg=x",
		"data:text/plain;base64,SGVsbG8=", "mailto:a.b+c@example.com?subject=Hi%20there", "tel:+1-816-555-1212",
		"arn:aws:s3:::bucket/key/*", "arn:aws:lambda:us-east-1:1:function:f:$LATEST", "urn:isbn:0451450523",
		"k8s://ns/prod/deployments/api", "apps/v1/namespaces/x/deployments/y:scale", "pkg.Service/Method", "/google.pubsub.v1.Publisher/Publish",
		"registry:5000/img:tag", "npm:@scope/pkg@1.0.0", "pkg:npm/%40angular/animation@12.3.1", "s3://bucket//double/key", "gs://b/o#123",
		"jdbc:postgresql://h:5432/db?user=x", "mongodb://a:1,b:2/db", "postgresql:///db?host=/run/postgresql", "amqp://h/%2F",
		"file:///C:/Users/x/a.txt", `C:\Users\x\a.txt`, "../a/b", "~/x", "/var/log/*.log", "#general", "SELECT * FROM users", "a@b.example",
	} {
		if _, err := ReadResource(raw); err != nil {
			t.Errorf("ReadResource(%q) = %v, want it read", raw, err)
		}
	}
}
