package reference

import (
	"fmt"
	"strings"
)

// A scene is a resource with patterns for it. Wide patterns match the resource. Narrow patterns
// match some of the places that the resource may reach.
type scene struct {
	base   string
	wide   []string
	narrow []string
}

var scenes = []scene{
	{"https://api.example.com/v1/users", []string{"https://api.example.com/**", "https://*.example.com/v1/*", "https://**", "http*://api.example.com/**"}, []string{"https://api.example.com/v1/admin/**", "**/secret/**", "https://api.example.com/v2/*"}},
	{"https://api.example.com/v1/admin/users", []string{"https://api.example.com/**", "https://API.example.com:443/v1/**"}, []string{"https://api.example.com/v1/admin/**", "https://api.example.com/v1/admin/users"}},
	{"http://127.0.0.1/v1/admin", []string{"http://127.0.0.1/**", "http://*/**"}, []string{"http://127.0.0.1/v1/admin", "http://2130706433/**"}},
	{"http://[::1]:8080/x", []string{"http://[::1]:8080/**"}, []string{"http://[0:0::1]:8080/*"}},
	{"s3://bucket/data/secret/k", []string{"s3://bucket/**", "s3://bucket/data/**"}, []string{"s3://bucket/data/secret/**", "s3://other/**"}},
	{"postgres://db.example.com/orders", []string{"postgres://db.example.com/**", "postgres://*/**"}, []string{"postgres://db.example.com:5432/orders", "postgres://db2/**"}},
	{"/srv/data/secret/k", []string{"/srv/**", "/srv/data/**", "**"}, []string{"/srv/data/secret/**", "/srv/data/secret/k", "/etc/**"}},
	{"src/pkg/main.go", []string{"src/**", "src/*/main.go"}, []string{"src/pkg/**", "src/other/**"}},
	{"//fs/share/a/b", []string{"//fs/share/**"}, []string{"//fs/share/a/*"}},
	{"file:///srv/data/secret/k", []string{"file:///srv/**", "file:///**"}, []string{"/srv/data/secret/**", "file:///srv/data/secret/k"}},
	{`C:\Users\alice\secret\x`, []string{`C:\Users\**`, `C:/Users/**`}, []string{`C:\Users\alice\secret\**`, `C:\Windows\**`}},
	{`\\fs\share\a\b`, []string{`\\fs\share\**`}, []string{`\\fs\share\a\*`, `\\fs\private\**`}},
	{"mailto:alice@customers.example", []string{"mailto:*@customers.example", "*@customers.example", "**"}, []string{"*@rival.example", "alice@customers.example"}},
	{"bob@rival.example", []string{"*@rival.example"}, []string{"mailto:bob@rival.example", "*@rival.example"}},
	{"arn:aws:s3:::prod/orders", []string{"arn:aws:s3:::prod/**", "arn:**"}, []string{"arn:aws:s3:::prod/orders", "arn:aws:s3:::dev/*"}},
	{"kafka:orders", []string{"kafka:*"}, []string{"kafka:orders", "kafka:secret*"}},
}

type located struct {
	text             string
	allowed, blocked []string
}

// resource returns a random resource, and the patterns of a policy about it.
func (g *Generator) resource() located {
	if g.in(38) {
		return g.alone()
	}
	s := pick(g, scenes...)
	out := located{text: s.base}
	if g.in(45) {
		out.allowed = append(out.allowed, pick(g, s.wide...))
	}
	if g.in(8) {
		out.allowed = append(out.allowed, pick(g, s.narrow...))
	}
	if g.in(40) {
		out.blocked = append(out.blocked, pick(g, s.narrow...))
	}
	for range g.rng.IntN(3) {
		out.text = g.respell(out.text)
	}
	return out
}

// respell returns another spelling of a resource. Its meaning may change.
func (g *Generator) respell(s string) string {
	switch g.rng.IntN(12) {
	case 0: // escape one letter
		i := g.rng.IntN(len(s))
		if c := s[i]; c >= 'a' && c <= 'z' {
			return fmt.Sprintf("%s%%%02x%s", s[:i], c, s[i+1:])
		}
	case 1:
		return insertSegment(g, s, pick(g, ".", "%2e", "x/..", "x/%2e%2e", "%2e/..", "..", "%2e%2e", ""))
	case 2:
		return strings.Replace(s, "/a", pick(g, `\a`, "%2Fa", "//a"), 1)
	case 3:
		return s + pick(g, "?x=1", "?next=/home", "#f", ";a=b", "/", "%20", "?cc=bob@rival.example", ",bob@rival.example")
	case 4:
		if i := strings.Index(s, ":"); i > 0 {
			return strings.ToUpper(s[:i]) + s[i:]
		}
	case 5:
		if i := strings.Index(s, "://"); i > 0 {
			return s[:i+3] + "user@" + s[i+3:]
		}
	case 6:
		return strings.Replace(s, "example.com", pick(g, "EXAMPLE.com", "example.com.", "example.com:443", "example.com:8443", "example%2ecom", "example.com:5432"), 1)
	case 7:
		return strings.Replace(s, "127.0.0.1", pick(g, "2130706433", "0x7f.1", "0177.0.0.1", "[::ffff:127.0.0.1]"), 1)
	case 8:
		return strings.Replace(s, "/secret", pick(g, "/ｓecret", "/Secret", "/secret;x", "/%2573ecret"), 1)
	case 9:
		return strings.Replace(s, `\secret`, pick(g, `\SECRET.`, `\secret::$DATA`, `/secret`, `\x\..\secret`), 1)
	case 10:
		s = strings.Replace(s, "[::1]", pick(g, "[::1%25eth0]", "[0::0:1]", "[::1%25en1]"), 1)
		s = strings.Replace(s, "://db.example.com", "://"+pick(g, "db.example.com:5432x", "db.example.com,db2", "db2;db.example.com:5432", `db.example.com\x`, "db.example.com=", "db3,db.example.com:5432"), 1)
		return strings.Replace(s, "://bucket", "://"+pick(g, `bucket\data`, "bucket,other", "bucket;x"), 1)
	case 11:
		return pick(g, s, s, s, "<"+s+">", "URL:"+s, strings.Replace(s, ":8080", ":0", 1))
	}
	return s
}

// insertSegment inserts a segment before a random slash.
func insertSegment(g *Generator, s, segment string) string {
	var slashes []int
	for i := range s {
		if s[i] == '/' && (i == 0 || s[i-1] != '/') && !strings.HasPrefix(s[i:], "//") {
			slashes = append(slashes, i)
		}
	}
	if len(slashes) == 0 {
		return s
	}
	i := pick(g, slashes...)
	return s[:i] + "/" + segment + s[i:]
}

// alone returns a resource to which exactly one reader objects.
func (g *Generator) alone() located {
	h := pick(g, "https://h.example", "http://api.example:8080", "s3://bucket", "ssh://host")
	d := pick(g, "y", "pub", "v1")
	x := h + "/" + d + "/%2e/../a%2Fb" // the client reads /y/a%2Fb; the browser reads /a%2Fb
	asIs := h + "/" + d + "/?/??/a%2Fb"
	switch g.rng.IntN(7) {
	case 0: // only the client objects
		return located{text: x, allowed: []string{h + "/a%2Fb", h + "/" + d + "/a/b", asIs}}
	case 1: // only the browser objects
		return located{text: x, allowed: []string{h + "/" + d + "/a%2Fb", h + "/a/b", asIs}}
	case 2: // only the server objects
		return located{text: h + "/" + d + "/a%2Fb", allowed: []string{h + "/" + d + "/*"}}
	case 3: // only the literal reader objects
		return located{text: h + "/x/../" + d + "/a", allowed: []string{h + "/" + d + "/**"}}
	case 4: // only POSIX objects
		return located{text: d + `\main.go`, allowed: []string{d + "/**"}}
	case 5: // only Windows objects
		return located{text: d + `/b\..\..\c`, allowed: []string{d + "/**"}}
	}
	return located{text: pick(g, "mailto:", "") + "a@other.example,b@customers.example", allowed: []string{"*@customers.example", "mailto:*@customers.example"}[:1+g.rng.IntN(2)]}
}
