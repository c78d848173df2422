package oracles

import (
	"maps"
	"slices"
	"testing"
)

// seenByParsers are wrong allows that happened once and that no server or file can show. reads
// is the resource that at least one program takes each for.
var seenByParsers = []struct{ name, allow, block, resource, reads string }{
	{"a list of recipients, the stranger first", "mailto:*@customers.example", "", "mailto:mallory@evil.example,ann@customers.example", "mailto:mallory@evil.example"},
	{"a list cut at a semicolon", "mailto:*@customers.example", "", "mailto:mallory@evil.example;ann@customers.example", "mailto:mallory@evil.example"},
	{"an escaped comma", "mailto:*@customers.example", "", "mailto:mallory@evil.example%2Cann@customers.example", "mailto:mallory@evil.example"},
	{"a recipient in cc", "mailto:**", "mailto:*@evil.example", "mailto:ann@customers.example?cc=mallory@evil.example", "mailto:mallory@evil.example"},
	{"a recipient in to", "mailto:**", "mailto:*@evil.example", "mailto:?to=mallory@evil.example", "mailto:mallory@evil.example"},
	{"cc after an allowed recipient", "mailto:*@customers.example", "", "mailto:mallory@evil.example?cc=ann@customers.example", "mailto:mallory@evil.example"},
	{"upper case", "", "mailto:ceo@example.com", "MAILTO:CEO@EXAMPLE.COM", "mailto:ceo@example.com"},
	{"a space", "", "mailto:ceo@example.com", "mailto:%20ceo@example.com", "mailto:ceo@example.com"},
	{"a plain list", "*@customers.example", "", "mallory@evil.example, ann@customers.example", "mailto:mallory@evil.example"},
	{"a name before the address", "", "*@evil.example", "Mallory <mallory@evil.example>", "mailto:mallory@evil.example"},
	{"a list of numbers", "sms:+1555*", "", "sms:+15550100,+49900", "sms:+49900"},
	{"a number with separators", "", "sms:+15550100", "sms:+1-555-(01)00", "sms:+15550100"},
	{"a list in a URN", "urn:team:*", "", "urn:team:a,urn:root:b", "urn:team:a,urn:root:b"},
	{"an escaped dot in a host", "https://*.uk/**", "https://api.example.co.uk/**", "https://api.example.co%2euk/x", "https://api.example.co.uk/x"},
	{"a backslash behind a host", "https://api.example.com/**", "", `https://api.example.com\.evil.com/x`, `https://api.example.com/.evil.com/x`},
	{"a backslash and user info", "https://api.example.com/**", "", `https://evil.example\@api.example.com/x`, "https://evil.example/@api.example.com/x"},
	{"a capital sharp s", "", "https://straße.example/**", "https://STRAẞE.example/x", "https://strasse.example/x"},
	{"a sharp s is two letters to older programs", "", "https://strasse.example/**", "https://straße.example/x", "https://strasse.example/x"},
	{"a climb over ssh", "", "ssh://h/srv/admin/**", "ssh://h/srv/admin/%2e/../users", "ssh://h/srv/admin/users"},
	{"a climb over s3", "", "s3://b/admin/**", "s3://b/admin/%2e/../users", "s3://b/admin/users"},
	{"a climb in a path", "", "/srv/data/secret/**", "/srv/data/%2e%2e/../secret/k", "/srv/data/secret/k"},
	{"an unescaped path", "", "/srv/secret/**", "/srv/data/%2e%2e/secret/k", "/srv/secret/k"},
	{"an address in one number", "", "http://127.0.0.1/**", "http://2130706433/x", "http://127.0.0.1/x"},
	{"an address in six groups", "", "http://127.0.0.1/**", "http://[::ffff:7f00:1]/x", "http://127.0.0.1/x"},
	{"a file by another spelling", "", "/etc/**", "file://localhost/etc/%70asswd", "/etc/passwd"},
	{"a port of zero, which requests drops", "", "http://127.0.0.1/**", "http://127.0.0.1:0/x", "http://127.0.0.1/x"},
	{"a zone of an address that needs none", "", "http://[::1]/**", "http://[::1%251]/x", "http://[::1]/x"},
	{"the prefix URL:, which urllib drops", "", "https://api.example.com/**", "URL:https://api.example.com/x", "https://api.example.com/x"},
	{"angle brackets, which urllib drops", "", "https://api.example.com/**", "<https://api.example.com/x>", "https://api.example.com/x"},
	{"parameters before a climb, which servlets drop", "https://api.example.com/pub/**", "", "https://api.example.com/pub/;x/../admin", "https://api.example.com/admin"},
	{"a file on this machine by its address", "", "file:///etc/**", "file://127.0.0.1/etc/passwd", "file:///etc/passwd"},
	{"a drive behind a climb in a file's URL", "", "C:/Windows/**", `file:///x/%2e%2e/C:\Users\..\Windows\x`, "windows:c:/windows/x"},
	{"an escaped slash behind a server", "", "postgres://db.example.com/**", "postgres://db.example.com%2Fprod", "postgres://db.example.com/prod"},
	{"a backslash behind a bucket", "", "s3://bucket/secret/**", `s3://bucket\secret/key`, "s3://bucket/secret/key"},
	{"no number for a port", "", "postgres://db.example.com/**", "postgres://db.example.com:+5432/prod", "postgres://db.example.com/:+5432/prod"},
	{"a list with an empty host", "", "postgres://db.example.com/**", "postgres://,db.example.com/prod", "postgres://db.example.com/prod"},
	{"a list with what is no host", "", "postgres://db.example.com/**", "postgres://x::1,db.example.com/prod", "postgres://db.example.com/prod"},
	{"a URN in upper case", "", "urn:example:secret", "URN:example:secret", "urn:example:secret"},
	{"a climb in the query of a name", "", "urn:example:a/secret", "urn:example:a/secret?/../x", "urn:example:a/secret"},
	{"white space around the sign of an address", "", "mailto:ceo@example.com", "mailto:ceo@%20example.com", "mailto:ceo@example.com"},
	{"a line break within an address", "", "mailto:ceo@example.com", "mailto:ceo@%0d%0aexample.com", "mailto:ceo@example.com"},
	{"a recipient of one letter", "", "mailto:ceo@example.com", "mailto://bob@customers.example?cc=x&cc=ceo@example.com", "mailto:ceo@example.com"},
	{"a backslash in a bucket's path before a climb", "", "s3://bucket/secret/**", `s3://bucket\secret/../..%25252f/k`, "s3://bucket/secret/../..%25252f/k"},
	{"a backslash as a letter and as a slash", "", "ssh://h/srv/k", `ssh://h/srv/a\b/../%2e%2e/a%5cb/../k`, "ssh://h/srv/k"},
	{"a scheme with a backslash", "", "postgres://h/**", `postgres:/\h/%09prod`, "postgres://h/%09prod"},
	{"a port in a list, where node ends the host", "", "postgres://h/**", "postgres://h:00,/prod", "postgres://h/:00,/prod"},
	{"an escape behind an empty port", "", "ssh://h/srv/**", "ssh://h:%2Fsrv/k", "ssh://h/srv/k"},
	{"colons at the end of an authority, which Go drops", "", "ssh://h/srv/k", "ssh://h::/srv/k", "ssh://h/srv/k"},
	{"a port with a colon at its end", "", "postgres://h/prod", "postgres://h:5432:/prod", "postgres://h/prod"},
	{"doubled slashes that Go merges before escaped dots", "", "https://h/admin/**", "https://h//admin/%2e%2e/k", "https://h/admin/%2e%2e/k"},
	{"an escape that Go decodes before it resolves nothing", "", "http://h/a/**", `http://h/a%2f../b\`, "http://h/a/../b%5C"},
	{"a zone escaped twice, which requests decodes", "", "http://[2001:db8::1]/**", "http://[2001:db8::%2531]/k", "http://[2001:db8::1]/k"},
	{"a zone that urllib decodes to a colon", "", "http://127.0.0.1/**", "http://[::FFFF%3A7f00:1]/k", "http://127.0.0.1/k"},
	{"a space behind URL:", "", "https://h/**", "URL: https://h/k", "https://h/k"},
	{"a backslash that begins no host of a file", "", "/etc/**", `file:/\localhost:80/x/../../etc/ssh/key`, "/etc/ssh/key"},
	{"a backslash that ends no host of a file", "", "file:///etc/ssh/**", `file://\etc/ssh/x//../k`, "file:///etc/ssh/x/k"},
	{"a drive that no climb leaves", "", `C:\Windows\**`, `file:///..\C:\..\Windows\x`, "windows:c:/windows/x"},
	{"an address behind slashes", "", "mailto:*@example.com", "mailto:bob@customers.example%20//ceo@example.com", "mailto:@example.com"},
	{"a query within a header", "", "mailto:*@example.com", "mailto:?to=bob@customers.example?cc=ceo@example.com#x", "mailto:@example.com"},
	{"white space and a control within a domain", "", "mailto:ceo@example.com", "mailto:ceo@example.co m%0d%0a%00,", "mailto:ceo@example.com"},
	{"three slashes, which libcurl takes for two", "", "postgres://h/**", "postgres:///h/prod", "postgres://h/prod"},
	{"a joiner in the host of a service, which older clients drop", "", "postgres://example.com/**", "postgres://ex\uff41\u200dmple.com/prod", "postgres://example.com/prod"},
	{"two dots and a space, a name to node", "", `\\fs\share\secret\**`, `\\fs\share\secret\.. \k`, "windows:////fs/share/secret/.. /k"},
	{"a fragment behind a number", "", "tel:+15550100", "tel:+15550100#x", "tel:+15550100"},
	{"slashes before numbers", "", "sms:+15550100", "sms://+15550199,+15550100", "sms:+15550100"},
	{"doubled slashes that Go merges before a climb", "", "https://api.example.com/a/admin/**", "https://api.example.com/a/x//../admin/%2e/%2e/../../k", "https://api.example.com/a/admin/k"},
	{"backslashes in a file's URL", "", `C:\Windows\**`, `file:///C:\Users\..\Windows\x`, "windows:c:/windows/x"},
	{"a doubled backslash in a share", "", `\\fs\share\secret\**`, `\\fs\\share\secret\k`, "windows:////fs/share/secret/k"},
	{"a segment of a space before a climb", "", `C:\Windows\System32\**`, `C:\Windows\ \..\System32\x`, "windows:c:/windows/system32/x"},
	{"a file on another drive letter's case", "", `C:\Windows\**`, "file:///c:/users/../windows/x", "windows:c:/windows/x"},
}

// TestSeenByParsers checks that writ does not allow a resource that some program reads as
// forbidden.
func TestSeenByParsers(t *testing.T) {
	var texts []string
	for _, s := range seenByParsers {
		texts = append(texts, s.resource)
	}
	read := newAsked(t).ask(t, texts)
	for i, s := range seenByParsers {
		t.Run(s.name, func(t *testing.T) {
			if _, ok := targets(read[i])[s.reads]; !ok {
				t.Errorf("no program reads %q as %q, but %q", s.resource, s.reads, slices.Sorted(maps.Keys(targets(read[i]))))
			}
			checkNotAllowed(t, s.allow, s.block, s.resource)
		})
	}
}
