package resource

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// read returns a reading in the form that tests compare: "client browser: text".
func read(r Reading) string { return strings.Join(r.Readers.Names(), " ") + ": " + r.Text }

// TestDecision_Resources_Readers checks the readings of each reader for each form.
func TestDecision_Resources_Readers(t *testing.T) {
	const urls = "client browser server literal: "
	for _, test := range []struct {
		raw  string
		want []string
	}{
		{"HTTPS://u:p@EXAMPLE.com.:443#f", []string{urls + "https://example.com/"}},
		{"https://h.example/a/./b/../%7Ec", []string{"client browser server: https://h.example/a/~c", "literal: https://h.example/a/./b/../~c"}},
		{"https://h.example/a/%2e%2e/b", []string{"client literal: https://h.example/a/../b", "browser server: https://h.example/b"}},
		{"https://h.example/a%2Fb%3Fc", []string{"client browser literal: https://h.example/a%2Fb%3Fc", "server: https://h.example/a/b%3Fc"}},
		{`https://h.example/a\b`, []string{`client server literal: https://h.example/a\b`, "client browser server literal: https://h.example/a/b"}},
		{"https://h.example/a/..;x/b", []string{urls + "https://h.example/a/..;x/b", "server: https://h.example/b"}},
		{"https://faß.example/", []string{urls + "https://xn--fa-hia.example/", urls + "https://fass.example/"}},
		{"http://[::FFFF:7F00:1]:80/", []string{urls + "http://127.0.0.1/"}},
		{"http://0x7f.1/", []string{urls + "http://127.0.0.1/"}},
		{"http://[fe80::1%25eth0]/", []string{urls + "http://[fe80::1%25eth0]/"}},
		{"S3://Bucket/a//b", []string{"client browser literal: s3://bucket/a//b", "server: s3://bucket/a/b"}},
		{"ssh://git@h:22/%252e", []string{"client browser literal: ssh://h/%252e", "server: ssh://h/%252e", "server: ssh://h/"}},
		{"jdbc:postgresql://H:5432/db", []string{urls + "jdbc:postgresql://h/db"}},
		{"file:/a%20b/../c", []string{"browser client posix decoded_posix windows: file:///c"}},
		{"file:///a%20b", []string{"client browser decoded_posix windows: file:///a b", "posix windows: file:///a%2520b"}},
		{"file:///C|/x", []string{"browser: file:///C:/x", "client posix decoded_posix windows: file:///C|/x", "windows: file:///C:/x"}},
		{`C:\a\..\..\b. \k:s`, []string{"windows: C:/b/k"}},
		{`\\?\UNC\h\s\..\x`, []string{"windows: //h/s/x"}},
		{"//h/s//x", []string{"posix: //h/s/x", "windows: //h/s/x"}},
		{`a\b/../c`, []string{"posix: c", "windows: a/c"}},
		{"/a%2e?b", []string{"posix: /a%252e%3Fb", "server: /a.%3Fb"}},
		{"../a/./b", []string{"posix: ../a/b"}},
		{"mailto:A@B.Example,c%40d.example?CC=e@f.example", []string{"address: A@b.example", "address: c@d.example", "address: e@f.example"}},
		{"Bob <bob@B.example>; x@y.example", []string{"address: bob@b.example", "address: x@y.example"}},
		{"tel:+49-(30) 12", []string{"number: tel:+493012"}},
		{"sms:+1,+2?body=x", []string{"number: sms:+1", "number: sms:+2"}},
		{"urn:isbn:0451450523", []string{"posix: urn:isbn:0451450523"}},
		{"git@github.com:org/repo.git", []string{"posix: git@github.com:org/repo.git"}},
	} {
		r, err := Read(test.raw)
		if err != nil {
			t.Errorf("Read(%q): %v", test.raw, err)
			continue
		}
		var got []string
		for i := range r.Len(ForAllow) {
			got = append(got, read(r.At(ForAllow, i)))
		}
		if !sameReadings(got, test.want) {
			t.Errorf("Read(%q) =\n%q, want\n%q", test.raw, got, test.want)
		}
	}
}

// TestDecision_Resources_BlocksSeeEachHostOfAService checks which hosts a block sees in an
// authority that parsers cut in different ways. An allowance sees only the whole authority and, if
// commas separate hosts, each of these hosts.
func TestDecision_Resources_BlocksSeeEachHostOfAService(t *testing.T) {
	for _, test := range []struct {
		authority     string
		blocks, allow string
	}{
		{"db2;db:5432:5432", "db2 db", "db2;db:5432:5432"},
		{"db2;;db:5432:5432", "db2 db", "db2;;db:5432:5432"},
		{"db2,,db::5432", "db2 db", "db2,,db::5432 db2"},
		{"db:5433:5434", "db db:5433 db:5434", "db:5433:5434"},
		{"db:5432:5433,db2", "db db:5433 db2", "db:5432:5433,db2 db2"},
		{"db2,db:5432x", "db2 db", "db2,db:5432x db2"},
		{"db2,db:x5433", "db2 db", "db2,db:x5433 db2"},
		{"db2;db:99999", "db2 db", "db2;db:99999"},
		{"db2|db:5433", "db2 db db:5433", "db2|db:5433"},
		{"db2 db", "db2 db", "db2 db"},
		{"db2+DB:5433+db3", "db2 db db:5433 db3", "db2+db:5433+db3"},
		{"db2%2Cdb:5433:", "db2 db db:5433", "db2%2Cdb:5433:"},
		{"db2\uff1bdb:5433:", "db2 db db:5433", "db2\uff1bdb:5433:"},
		{`db2\db:5433`, "db2 db db:5433", `db2\db:5433`},
		{"address=(host=db)(port=5433)", "db", "address=(host=db)(port=5433)"},
		{"u:p@[db2:5433,db]", "db2:5433 db", "[db2:5433,db]"},
		{"u:p@db2,u:p@db", "db2 db", "db"},
		{"db2,u:p@db", "db2 db", "db"},
		{"u:p@x@db", "x db", "db"},
		{"[::1]:5433:5434;[::2]x", "[::1] [::1]:5433 [::1]:5434 [::2]", "[::1]:5433:5434;[::2]x"},
		{"[fe80::1%25eth0]:5433", "[fe80::1]:5433", "[fe80::1%25eth0]:5433"},
		{"db2,[fe80::1%25eth0]", "db2 [fe80::1] db2,[fe80::1]", "db2,[fe80::1%25eth0] db2 [fe80::1%25eth0]"},
		{"db2;[fe80::1%25eth0]:5432:5432", "db2 [fe80::1]", "db2;[fe80::1%25eth0]:5432:5432"},
		{"db2;faß.example::5432", "db2 xn--fa-hia.example fass.example", "db2;faß.example::5432"},
		{"/db:5433:5434", "db db:5433 db:5434", ""},
		{"db:5433", "db:5433", "db:5433"},
		{"u:p@db:5433", "db:5433", "db:5433"},
	} {
		raw := "postgres://" + test.authority + "/orders"
		r, err := Read(raw)
		if err != nil {
			t.Errorf("Read(%q): %v", raw, err)
			continue
		}
		var blocks []string
		for i := range r.Len(ForBlock) {
			blocks = append(blocks, r.At(ForBlock, i).Text)
		}
		for host := range strings.FieldsSeq(test.blocks) {
			if !slices.Contains(blocks, "postgres://"+host+"/orders") {
				t.Errorf("a block of %q sees %q, want %s too", raw, blocks, host)
			}
		}
		if !strings.Contains(test.blocks+" ", "db ") && slices.Contains(blocks, "postgres://db/orders") {
			t.Errorf("a block of %q sees %q, want no db on its default port", raw, blocks)
		}
		var allow []string
		for i := range r.Len(ForAllow) {
			host, _, _ := strings.Cut(strings.TrimPrefix(r.At(ForAllow, i).Text, "postgres://"), "/")
			if !slices.Contains(allow, host) {
				allow = append(allow, host)
			}
		}
		if got := strings.Join(allow, " "); got != test.allow {
			t.Errorf("an allowance of %q sees the hosts %q, want %q", raw, got, test.allow)
		}
	}
}

// TestDecision_Resources_PassedOnce checks readings of resources that passed a policy once: each has the
// reading of a program, and a side sees it.
func TestDecision_Resources_PassedOnce(t *testing.T) {
	for _, test := range []struct {
		side          Side
		raw, want, by string
	}{
		{ForAllow, `wss://stream.example.com/pub/\a%5Cb\..\../admin/feed`, "wss://stream.example.com/admin/feed", "node's url.parse, decoded"},
		{ForAllow, `s3://bucket/pub/\a%5Cb\..\../admin/feed`, "s3://bucket/admin/feed", "node's url.parse, decoded"},
		{ForBlock, "file:///srv/x%c0%af/..%252f../../etc/ssh/key", "file:///etc/ssh/key", "Python's unquote, twice"},
		{ForBlock, "file:///srv/x%c0%af/..%252f../../etc/ssh/key", "/etc/ssh/key", "Python's unquote, twice"},
		{ForBlock, "file:///srv/x%25252f../../..%252fetc/ssh/key", "file:///etc/ssh/key", "Python's unquote, twice"},
		{ForBlock, `C:\Users\..\Windows\System32.\.. \SAM`, "C:/Windows/System32/.. /SAM", "a program for Windows"},
		{ForBlock, "file:///C:/Windows/System32./.. /SAM", "file:///C:/Windows/System32/.. /SAM", "a program for Windows"},
		{ForBlock, "eve@rival.example..", "eve@rival.example", "nodemailer"},
		{ForBlock, "mailto:eve@rival.example..", "mailto:eve@rival.example", "nodemailer"},
		{ForBlock, "/srv/x%c0%af/..%252f../../etc/ssh/key", "/etc/ssh/key", "Python's unquote, twice"},
	} {
		r, err := Read(test.raw)
		if err != nil {
			t.Errorf("Read(%q): %v", test.raw, err)
			continue
		}
		found := false
		for i := range r.Len(test.side) {
			found = found || r.At(test.side, i).Text == test.want
		}
		if !found {
			t.Errorf("Read(%q) has no %s, which %s reads", test.raw, test.want, test.by)
		}
	}
}

// TestDecision_Resources_ManyHostsAreRefused checks that a list with too many hosts in any of its
// spellings is refused and not cut.
func TestDecision_Resources_ManyHostsAreRefused(t *testing.T) {
	for _, entry := range []string{"h%d,", "h%d;", "h%d:1:1,", "h%d|", "h%d%%2C", "u@h%d,"} {
		var authority strings.Builder
		for i := range 65 {
			fmt.Fprintf(&authority, entry, i)
		}
		if _, err := Read("postgres://" + authority.String() + "h/orders"); err == nil {
			t.Errorf("Read takes 66 hosts written as %q, want an error", entry)
		}
	}
}

// sameReadings compares readings. It ignores the order of readers.
func sameReadings(got, want []string) bool {
	key := func(list []string) []string {
		var keys []string
		for _, s := range list {
			readers, text, _ := strings.Cut(s, ": ")
			for _, reader := range strings.Fields(readers) {
				keys = append(keys, reader+" "+text)
			}
		}
		slices.Sort(keys)
		return keys
	}
	return slices.Equal(key(got), key(want))
}

// TestDecision_Resources_Refused checks resources that are refused with a 400, of every form.
func TestDecision_Resources_Refused(t *testing.T) {
	for _, raw := range []string{
		"", " a", "a ", "a\nb", "a\u200bb", "a\u202eb", "a\u00adb", "x\u2060y", "a\xff",
		"http:/h/x", "http:h", "http:///h", `http:\\h\x`, "https://h%2eexample/", `https://a\b/`, `https://a\@b/`,
		"https://h/%ff", "https://h/%252e", "https://h/a%00", "https://h/a%0Ab", "s3://b/a%0A", "file:///a%09",
		"https://a..b/", "https:///x", "https://h:x/", "https://h:65536/", "https://256.1.1.1/", "https://[::g]/", "https://a b/",
	} {
		_, err := Read(raw)
		var refused *Error
		if !errors.As(err, &refused) {
			t.Errorf("Read(%q) = %v, want an *Error", raw, err)
		} else if len(raw) > 12 && strings.Contains(err.Error(), raw) {
			t.Errorf("Read(%q) = %v, which repeats it", raw, err)
		}
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
		{"a/b?flag&token=x", "a/b"},
		{"a/b?next=/home", "a/b"},
		{"a/b?next/x;token=y", "a/b"},
		{"a/b?token%3Dx", "a/b"},
		{"a/b?c?token=x", "a/b?c"},
		{"?token=x", "?"},
		{"/data/what?.txt", "/data/what?.txt"},
		{"/data/what?", "/data/what?"},
		{"/data/what", "/data/what"},
		{"/data/what?.csv/day=1", "/data/what?.csv/day=1"},
		{"SELECT a FROM t WHERE b = ? AND c=1", "SELECT a FROM t WHERE b = ? AND c=1"},
		{"urn:a:b?+x", "urn:a:b?+x"},
		{"#1?", "#1?"},
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
			r, err := Read(tt.raw)
			if err != nil {
				t.Fatalf("Read(%q): %v", tt.raw, err)
			}
			if got := r.Projection(); got != tt.want {
				t.Errorf("Read(%q).Projection() = %q, want %q", tt.raw, got, tt.want)
			}
		})
	}
}

// TestRead_PlainAgreesWithTheLongWay checks that a resource is plain only if every reader reads it
// unchanged.
func TestRead_PlainAgreesWithTheLongWay(t *testing.T) {
	for _, raw := range plainResources {
		checkPlain(t, raw)
		if _, ok := readPlain(raw); !ok {
			t.Errorf("readPlain(%q) does not take it", raw)
		}
	}
}

// checkPlain checks that readPlain and readAny agree about raw.
func checkPlain(t *testing.T, raw string) {
	t.Helper()
	quick, ok := readPlain(raw)
	if !ok {
		return
	}
	long, err := readAny(raw)
	if err != nil {
		t.Fatalf("readAny(%q): %v, but it is plain", raw, err)
	}
	if quick.normal != long.normal || quick.Len(ForAllow) != long.Len(ForAllow) || quick.At(ForAllow, 0) != long.At(ForAllow, 0) || quick.Stops() != long.Stops() {
		t.Errorf("readPlain(%q) = %+v, readAny = %+v", raw, quick, long)
	}
	if quick.Len(ForBlock) != long.Len(ForBlock) {
		t.Fatalf("readPlain(%q) has %d readings of a block, readAny %q", raw, quick.Len(ForBlock), long.block)
	}
	for i := range quick.Len(ForBlock) {
		if quick.At(ForBlock, i) != long.At(ForBlock, i) {
			t.Errorf("BlockAt(%d) of %q = %+v, the long way %+v", i, raw, quick.At(ForBlock, i), long.At(ForBlock, i))
		}
	}
}

var plainResources = []string{
	"https://api.example.com/v1/charges/ch_123",
	"https://api.example.com/v1/search?q=a&b=../c",
	"http://localhost:3820/v1",
	"prod/db/users",
	"/etc/passwd",
	"deploy-target",
	"arn:aws:s3:::bucket/key",
	"reports/Quarterly report (v2).docx",
}

func TestRead_DoesNotAllocateOnPlainResources(t *testing.T) {
	for _, raw := range plainResources {
		if n := testing.AllocsPerRun(100, func() {
			if _, err := Read(raw); err != nil {
				t.Error(err)
			}
		}); n != 0 {
			t.Errorf("Read(%q) allocates %v times, want 0", raw, n)
		}
	}
}

// FuzzRead checks the promises that callers rely on. readPlain agrees with readAny. An error
// repeats nothing of the resource. The first reading of a block is the text as it was written. The
// canonical form of a canonical form is the same text.
func FuzzRead(f *testing.F) {
	for _, raw := range plainResources {
		f.Add(raw)
	}
	for _, raw := range []string{`C:\a\..\b:c`, "https://ß.example:443/%2e%2e/a;b?c#d", "mailto:a@b.example?cc=c", "file:///c|/x", "mongodb://a,b;c/d%252f", `\\?\UNC\a\b`} {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		r, err := Read(raw)
		if err != nil {
			if len(raw) > 12 && strings.Contains(err.Error(), raw) {
				t.Errorf("Read(%q) = %v, which repeats it", raw, err)
			}
			return
		}
		checkPlain(t, raw)
		if first := r.At(ForBlock, 0); first.Text != raw || first.Readers&Raw == 0 {
			t.Errorf("BlockAt(0) of %q = %+v", raw, first)
		}
		for i := range r.Len(ForAllow) {
			if text := r.At(ForAllow, i).Text; canonical(text) != text {
				t.Errorf("reading %q of %q is not canonical: %q", text, raw, canonical(text))
			}
		}
	})
}

// TestRead_OrdinaryNamesAreRead checks that ordinary names are not refused, even if they look like
// an attempt to hide something.
func TestRead_OrdinaryNamesAreRead(t *testing.T) {
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
		if _, err := Read(raw); err != nil {
			t.Errorf("Read(%q) = %v, want it read", raw, err)
		}
	}
}
