package glob

import (
	"testing"

	"writ/engine/resource"
)

// blockedSpelling is one way in which a blocked resource may be written.
type blockedSpelling struct{ name, resource string }

// TestDecision_Resources_NoSpellingOfABlockedResourceMayPass holds that each
// spelling of a blocked resource is refused or matched by its blocked pattern.
func TestDecision_Resources_NoListedSpellingOfABlockedResourceMayPass(t *testing.T) {
	sets := []struct {
		pattern   string
		spellings []blockedSpelling
	}{
		{"https://example.com/admin/secret", webSpellings},
		{"https://127.0.0.1/**", addressSpellings},
		{"https://bücher.example/**", idnaSpellings},
		{"/etc/passwd", pathSpellings},
		{"postgres://db.example.com/prod", otherSpellings},
		{"mailto:ceo@example.com", mailSpellings},
		{"file:///c:/windows/system32", fileSpellings},
		{"http://[fe80::1]/x", []blockedSpelling{{"web address with a zone", "http://[fe80::1%25eth0]/x"}}},
		{"ssh://[fe80::1]/x", []blockedSpelling{{"service address with a zone", "ssh://h,[fe80::1%25eth0]/x"}}},
		{"file://[fe80::1]/x", []blockedSpelling{{"file address with a zone", "file://[fe80::1%25eth0]/x"}}},
	}
	total := 0
	for _, set := range sets {
		blocked, err := Compile([]string{set.pattern}, resource.ForBlock)
		if err != nil {
			t.Fatalf("Compile(%q): %v", set.pattern, err)
		}
		for _, s := range set.spellings {
			total++
			t.Run(s.name, func(t *testing.T) {
				r, err := resource.Read(s.resource)
				if err == nil && !anyReading(blocked, &r) {
					t.Errorf("resource.Read(%q) = %q, which passes %q; want refused or blocked", s.resource, texts(&r), set.pattern)
				}
			})
		}
	}
	if total < 80 {
		t.Errorf("the table has %d spellings, want at least 80", total)
	}
}

// anyReading reports whether a blocked pattern matches any reading.
func anyReading(l *List, r *resource.Readings) bool {
	i, _ := l.FirstMatch(r)
	return i >= 0
}

// texts returns the readings that an allowance must cover.
func texts(r *resource.Readings) []string {
	var all []string
	for i := range r.Len(resource.ForAllow) {
		all = append(all, r.At(resource.ForAllow, i).Text)
	}
	return all
}

// mustList compiles a list.
func mustList(t testing.TB, side resource.Side, patterns ...string) *List {
	t.Helper()
	l, err := Compile(patterns, side)
	if err != nil {
		t.Fatalf("Compile(%q): %v", patterns, err)
	}
	return l
}

var webSpellings = []blockedSpelling{
	{"as blocked", "https://example.com/admin/secret"},
	{"scheme in upper case", "HTTPS://example.com/admin/secret"},
	{"scheme in mixed case", "hTtPs://example.com/admin/secret"},
	{"host in upper case", "https://EXAMPLE.COM/admin/secret"},
	{"host in mixed case", "https://Example.Com/admin/secret"},
	{"default port", "https://example.com:443/admin/secret"},
	{"default port with zeros", "https://example.com:000443/admin/secret"},
	{"empty port", "https://example.com:/admin/secret"},
	{"port beyond 16 bits", "https://example.com:65979/admin/secret"},
	{"port in full-width digits", "https://example.com:\uff14\uff14\uff13/admin/secret"},
	{"trailing dot", "https://example.com./admin/secret"},
	{"trailing dot and port", "https://example.com.:443/admin/secret"},
	{"two trailing dots", "https://example.com../admin/secret"},
	{"escaped trailing dot", "https://example.com%2e/admin/secret"},
	{"ideographic trailing dot", "https://example.com\u3002/admin/secret"},
	{"user", "https://user@example.com/admin/secret"},
	{"user and password", "https://user:pw@example.com/admin/secret"},
	{"empty user", "https://@example.com/admin/secret"},
	{"user that looks like a host", "https://good.com@example.com/admin/secret"},
	{"user with port", "https://good.com:80@example.com/admin/secret"},
	{"two at signs", "https://good.com@x@example.com/admin/secret"},
	{"escaped at sign in user", "https://a%40b@example.com/admin/secret"},
	{"no slashes after scheme", "https:example.com/admin/secret"},
	{"one slash after scheme", "https:/example.com/admin/secret"},
	{"three slashes after scheme", "https:///example.com/admin/secret"},
	{"seven slashes after scheme", "https:///////example.com/admin/secret"},
	{"backslashes after scheme", `https:\\example.com/admin/secret`},
	{"mixed slashes after scheme", `https:\/example.com/admin/secret`},
	{"backslashes in path", `https://example.com\admin\secret`},
	{"one backslash in path", `https://example.com/admin\secret`},
	{"backslash before a second host", `https://good.com\@example.com/admin/secret`},
	{"dot segment", "https://example.com/./admin/secret"},
	{"inner dot segment", "https://example.com/admin/./secret"},
	{"dot-dot segment", "https://example.com/x/../admin/secret"},
	{"dot-dot above the root", "https://example.com/../../admin/secret"},
	{"dot-dot with backslashes", `https://example.com/x\..\admin\secret`},
	{"escaped dot segment", "https://example.com/%2e/admin/secret"},
	{"escaped dot-dot segment", "https://example.com/x/%2e%2e/admin/secret"},
	{"half-escaped dot-dot segment", "https://example.com/x/.%2E/admin/secret"},
	{"dot-dot with an encoded slash", "https://example.com/x%2f..%2fadmin/secret"},
	{"dot-dot with a parameter", "https://example.com/x/..;/admin/secret"},
	{"dot-dot with an escaped parameter", "https://example.com/x/..%3b/admin/secret"},
	{"doubled slash", "https://example.com//admin/secret"},
	{"doubled slashes", "https://example.com///admin////secret"},
	{"slash and backslash", `https://example.com/admin/\secret`},
	{"encoded slash", "https://example.com/admin%2Fsecret"},
	{"encoded slash in lower case", "https://example.com/admin%2fsecret"},
	{"encoded backslash", "https://example.com/admin%5Csecret"},
	{"encoded slashes doubled", "https://example.com/admin%2F%2fsecret"},
	{"everything encoded", "https://example.com/%61%64%6d%69%6e%2f%73%65%63%72%65%74"},
	{"escaped letter", "https://example.com/%61dmin/secret"},
	{"escaped host letter", "https://ex%61mple.com/admin/secret"},
	{"escaped host letters in upper case", "https://%45XAMPLE.com/admin/secret"},
	{"escaped host dot", "https://example%2Ecom/admin/secret"},
	{"double-encoded letter", "https://example.com/%2561dmin/secret"},
	{"double-encoded slash", "https://example.com/admin%252Fsecret"},
	{"double-encoded by parts", "https://example.com/admin%25%32%46secret"},
	{"triple-encoded slash", "https://example.com/admin%25252Fsecret"},
	{"double-encoded host", "https://ex%2561mple.com/admin/secret"},
	{"overlong slash", "https://example.com/admin%c0%afsecret"},
	{"overlong dot", "https://example.com/x/%c0%ae%c0%ae/admin/secret"},
	{"overlong letter", "https://example.com/%c1%a1dmin/secret"},
	{"NUL", "https://example.com/admin/secret\x00"},
	{"NUL and suffix", "https://example.com/admin/secret\x00.png"},
	{"escaped NUL", "https://example.com/admin/secret%00"},
	{"escaped line feed", "https://example.com/admin/secret%0a"},
	{"escaped C1 control", "https://example.com/admin/%c2%85secret"},
	{"tab", "https://example.com/admin/\tsecret"},
	{"tab in the scheme", "ht\ttps://example.com/admin/secret"},
	{"line feed in the host", "https://exam\nple.com/admin/secret"},
	{"carriage return", "https://example.com/admin/secret\r"},
	{"DEL", "https://example.com/admin/secret\x7f"},
	{"leading space", " https://example.com/admin/secret"},
	{"trailing space", "https://example.com/admin/secret "},
	{"leading no-break space", "\u00a0https://example.com/admin/secret"},
	{"trailing ideographic space", "https://example.com/admin/secret\u3000"},
	{"byte order mark", "\ufeffhttps://example.com/admin/secret"},
	{"zero-width space in path", "https://example.com/ad\u200bmin/secret"},
	{"zero-width joiner in path", "https://example.com/ad\u200dmin/secret"},
	{"right-to-left override", "https://example.com/\u202enimda/secret"},
	{"soft hyphen in path", "https://example.com/ad\u00admin/secret"},
	{"soft hyphen in host", "https://exam\u00adple.com/admin/secret"},
	{"zero-width space in host", "https://exam\u200bple.com/admin/secret"},
	{"word joiner in host", "https://exam\u2060ple.com/admin/secret"},
	{"escaped soft hyphen in host", "https://exam%C2%ADple.com/admin/secret"},
	{"full-width host", "https://\uff45\uff58\uff41\uff4d\uff50\uff4c\uff45.com/admin/secret"},
	{"full-width upper-case host", "https://\uff25\uff38\uff21\uff2d\uff30\uff2c\uff25.com/admin/secret"},
	{"escaped full-width host", "https://%ef%bd%85xample.com/admin/secret"},
	{"full-width dot", "https://example\uff0ecom/admin/secret"},
	{"ideographic dot", "https://example\u3002com/admin/secret"},
	{"half-width ideographic dot", "https://example\uff61com/admin/secret"},
	{"mathematical letters in host", "https://\U0001d41e\U0001d431\U0001d41a\U0001d426\U0001d429\U0001d425\U0001d41e.com/admin/secret"},
	{"circled letter in host", "https://\u24d4xample.com/admin/secret"},
	{"Kelvin sign for k, unlike the host", "https://example.com/admin/secret#\u212a"},
	{"full-width slash in host", "https://example.com\uff0fadmin/secret"},
	{"full-width path", "https://example.com/\uff41\uff44\uff4d\uff49\uff4e/secret"},
	{"full-width slash in path", "https://example.com/admin\uff0fsecret"},
	{"full-width dots in path", "https://example.com/x/\uff0e\uff0e/admin/secret"},
	{"empty query", "https://example.com/admin/secret?"},
	{"empty fragment", "https://example.com/admin/secret#"},
	{"empty query and fragment", "https://example.com/admin/secret?#"},
	{"fragment", "https://example.com/admin/secret#x"},
	{"fragment that looks like a host", "https://example.com/admin/secret#@good.com/"},
	{"invalid UTF-8", "https://example.com/admin/secret\xff"},
	{"overlong raw bytes", "https://example.com/admin\xc0\xafsecret"},
}

var addressSpellings = []blockedSpelling{
	{"decimal", "https://2130706433/x"},
	{"hexadecimal", "https://0x7f000001/x"},
	{"hexadecimal in upper case", "https://0X7F000001/x"},
	{"octal", "https://017700000001/x"},
	{"octal parts", "https://0177.0.0.1/x"},
	{"hexadecimal parts", "https://0x7f.0x0.0x0.0x1/x"},
	{"mixed parts", "https://0x7f.1/x"},
	{"two parts", "https://127.1/x"},
	{"three parts", "https://127.0.1/x"},
	{"leading zeros", "https://127.00.00.01/x"},
	{"trailing dot after an address", "https://127.0.0.1./x"},
	{"full-width digits", "https://\uff11\uff12\uff17.0.0.1/x"},
	{"circled digits", "https://\u2460\u2461\u2466.0.0.1/x"},
	{"ideographic dots", "https://127\u30020\u30020\u30021/x"},
	{"escaped digits", "https://%31%32%37.0.0.1/x"},
	{"mapped IPv6", "https://[::ffff:127.0.0.1]/x"},
	{"mapped IPv6 in hexadecimal", "https://[::ffff:7f00:1]/x"},
	{"mapped IPv6 in full", "https://[0:0:0:0:0:FFFF:7F00:0001]/x"},
	{"overflow", "https://4294967296.0.0.1/x"},
	{"five parts", "https://127.0.0.0.1/x"},
	{"empty part", "https://127..1/x"},
	{"zone", "https://[::ffff:127.0.0.1%25eth0]/x"},
}

var idnaSpellings = []blockedSpelling{
	{"Unicode", "https://bücher.example/x"},
	{"Punycode", "https://xn--bcher-kva.example/x"},
	{"Punycode in upper case", "https://XN--BCHER-KVA.example/x"},
	{"upper case", "https://BÜCHER.example/x"},
	{"decomposed", "https://bu\u0308cher.example/x"},
	{"escaped", "https://b%C3%BCcher.example/x"},
	{"escaped in lower case", "https://b%c3%bccher.example/x"},
	{"mapped Punycode prefix", "https://\uff58n--bcher-kva.example/x"},
	{"invalid Punycode", "https://xn--bcher-kva\u00fc.example/x"},
	{"Punycode of ASCII", "https://xn--example-.example/x"},
}

var pathSpellings = []blockedSpelling{
	{"doubled slashes in a path", "/etc//passwd"},
	{"doubled leading slashes", "//etc/passwd"},
	{"three leading slashes", "///etc/passwd"},
	{"leading backslashes", `\\etc\passwd`},
	{"slash and backslash first", `/\etc/passwd`},
	{"backslashes", `\etc\passwd`},
	{"dot segments", "/etc/./passwd"},
	{"dot-dot segments", "/var/../etc/passwd"},
	{"above the root", "/../etc/passwd"},
	{"dot-dot with backslash", `/var\..\etc\passwd`},
	{"encoded dots", "/var/%2e%2e/etc/passwd"},
	{"encoded slash", "/etc%2Fpasswd"},
	{"encoded backslash", "/etc%5cpasswd"},
	{"encoded dot-dot", "/var%2f%2e%2e%2fetc%2fpasswd"},
	{"escaped letters", "/%65%74%63/passwd"},
	{"double encoding", "/%2565tc/passwd"},
	{"dot segments after a question mark", "/x?/../etc/passwd"},
	{"dot segments after a number sign", "/x#/../../etc/passwd"},
	{"encoded dot segments after a question mark", "/x?%2f..%2f..%2fetc/passwd"},
	{"empty query", "/etc/passwd?"},
	{"NUL", "/etc/passwd\x00.txt"},
	{"full-width letters", "/\uff45\uff54\uff43/passwd"},
	{"full-width slashes", "\uff0fetc\uff0fpasswd"},
	{"ligature", "/etc/\u1d56asswd"},
}

var otherSpellings = []blockedSpelling{
	{"as blocked", "postgres://db.example.com/prod"},
	{"user info", "postgres://user:pw@db.example.com/prod"},
	{"scheme in upper case", "POSTGRES://db.example.com/prod"},
	{"host in upper case", "postgres://DB.Example.com/prod"},
	{"trailing dot", "postgres://db.example.com./prod"},
	{"default port", "postgres://db.example.com:5432/prod"},
	{"empty port", "postgres://db.example.com:/prod"},
	{"doubled slashes", "postgres://db.example.com//prod"},
	{"dot segments", "postgres://db.example.com/x/../prod"},
	{"backslash in path", `postgres://db.example.com/x\..\prod`},
	{"escaped host", "postgres://d%62.example.com/prod"},
	{"fragment", "postgres://db.example.com/prod#x"},
	{"behind a semicolon, with two ports", "postgres://db2;db.example.com:5432:5432/prod"},
	{"in a list, with an empty and a second port", "postgres://db2,db.example.com::5432/prod"},
	{"behind an odd port", "postgres://db2:5432:5432,db.example.com/prod"},
	{"in a list with empty entries", "postgres://,;db2,;db.example.com:5432:,/prod"},
	{"in a list with other separators", "postgres://db2|db.example.com:5432/prod"},
	{"as a value", "postgres://address=(host=db.example.com)(port=5432)/prod"},
	{"behind a user's own", "postgres://u:p@db.example.com,u:p@db2/prod"},
}

var mailSpellings = []blockedSpelling{
	{"as blocked", "mailto:ceo@example.com"},
	{"scheme in upper case", "MAILTO:ceo@example.com"},
	{"domain in upper case", "mailto:ceo@EXAMPLE.com"},
	{"escaped letter", "mailto:c%65o@example.com"},
	{"escaped dot", "mailto:ceo@example%2Ecom"},
	{"trailing dot", "mailto:ceo@example.com."},
	{"full-width domain", "mailto:ceo@\uff45xample.com"},
	{"ideographic dot", "mailto:ceo@example\u3002com"},
	{"encoded at sign", "mailto:ceo%40example.com"},
}

var fileSpellings = []blockedSpelling{
	{"as blocked", "file:///c:/windows/system32"},
	{"drive in upper case", "file:///C:/windows/system32"},
	{"drive with a bar", "file:///c|/windows/system32"},
	{"drive as host", "file://c:/windows/system32"},
	{"one slash", "file:/c:/windows/system32"},
	{"no slash", "file:c:/windows/system32"},
	{"four slashes", "file:////c:/windows/system32"},
	{"localhost", "file://localhost/c:/windows/system32"},
	{"localhost in upper case", "file://LOCALHOST/c:/windows/system32"},
	{"backslashes", `file:\\\c:\windows\system32`},
	{"above the drive", "file:///c:/../../windows/system32"},
	{"fragment", "file:///c:/windows/system32#x"},
	{"query", "file:///c:/windows/system32?x"},
}

// Only browsers read a backslash in a URL as a slash. To curl, Python's requests
// and Go's net/http it is a character, which they encode: no dot segment beside
// it is one to them.
func TestDecision_Resources_ABackslashHidesNoBlockedPathFromOtherClients(t *testing.T) {
	const host = "https://h.example"
	blocked := mustList(t, resource.ForBlock, host+"/admin/**")
	allowed := mustList(t, resource.ForAllow, host+"/public/**")
	for _, path := range []string{
		`/admin/..\public/x`, `//admin/..\public/x`, `/%61dmin/..\..\public/x`, `/admin/.\..\public\x`,
		`/x/../admin/..\public/`, `/admin%2F..\public/x`, `/admin/a\..\..\public/x?q#f`,
	} {
		r, err := resource.Read(host + path)
		if err != nil {
			t.Errorf("resource.Read(%q) = %v, want readings", host+path, err)
			continue
		}
		if !anyReading(blocked, &r) {
			t.Errorf("%q is not blocked in any of %q", path, texts(&r))
		}
		if allowed.Holds(&r) {
			t.Errorf("%q is allowed in each of %q", path, texts(&r))
		}
	}
}

// A client may send dot segments as they are, and its server decode slashes
// before it resolves them: Go's do.
func TestDecision_Resources_EncodedSlashesAreReadBeforeDotSegments(t *testing.T) {
	const host = "https://h.example"
	blocked, allowed := mustList(t, resource.ForBlock, host+"/secret/**"), mustList(t, resource.ForAllow, host+"/admin/**")
	for _, path := range []string{
		"/%73ecret/a%2Fb/../../admin/x", "/secret%2Fa/../admin/x", "/%73ecret/a%5cb/../../admin/x", "/x/../%73ecret/a%2fb%2Fc/../../../admin/x",
	} {
		r, err := resource.Read(host + path)
		if err != nil || !anyReading(blocked, &r) || allowed.Holds(&r) {
			t.Errorf("the readings of %q = %q, %v, want one in /secret", path, texts(&r), err)
		}
	}
}

// Of both slashes that a path encodes, a server that knows no Windows takes one
// for a slash alone: what it then calls ..\x is a name like any other.
func TestDecision_Resources_EncodedSlashesAndBackslashesAreReadApart(t *testing.T) {
	const host = "https://h.example"
	for base, paths := range map[string][]string{
		host: {
			`/secret%2F..%5Cadmin/x`, `/secret%2fa%5c..%5c..%5cadmin/x`, `/%73ecret%2F..%5C..%5Cadmin%5Cx`,
			`/secret/a%2Fb\../../../admin/x`, `/secret/a%2Fb%5C../../../admin/x`,
		},
		"s3://bucket": {`/secret%2F..%5Cadmin/x`},
		"":            {`/secret%2F..%5Cadmin/x`, `/secret/a%2Fb%5C../../../admin/x`},
	} {
		blocked, allowed := mustList(t, resource.ForBlock, base+"/secret/**"), mustList(t, resource.ForAllow, base+"/admin/**")
		for _, path := range paths {
			r, err := resource.Read(base + path)
			if err != nil || !anyReading(blocked, &r) || allowed.Holds(&r) {
				t.Errorf("the readings of %q = %q, %v, want one in /secret", base+path, texts(&r), err)
			}
		}
	}
}
