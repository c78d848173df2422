package oracles

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"writ.example/writ/engine"
)

type form string

const (
	web     form = "web"
	service form = "service"
	file    form = "file"
	windows form = "windows"
	name    form = "name"
	address form = "address"
)

// forbidden is a resource that three policies do not allow. One blocks the resource, one blocks
// its surroundings, and one allows only other resources.
type forbidden struct {
	form     form
	resource string
	around   string // the beginning of the blocked text; for an address, its end
	block    string
	allow    string
	via      string // a spelling of the resource that begins like an allowed resource
}

var forbiddenResources = []forbidden{
	{web, "https://api.example.com/v1/admin/secret", "https://api.example.com/v1/admin", "https://api.example.com/v1/admin/**",
		"https://api.example.com/v1/pub/**", "https://api.example.com/v1/pub/../admin/secret"},
	{web, "http://127.0.0.1/latest/meta-data/iam", "http://127.0.0.1/latest", "http://127.0.0.1/latest/**",
		"http://127.0.0.1/pub/**", "http://127.0.0.1/pub/../latest/meta-data/iam"},
	{web, "http://169.254.169.254/latest/api/token", "http://169.254.169.254/latest", "http://169.254.169.254/**",
		"http://api.example.com/**", "http://api.example.com@169.254.169.254/latest/api/token"},
	{web, "http://[2001:db8::1]/latest/api/token", "http://[2001:db8::1]/latest", "http://[2001:db8::1]/**",
		"http://api.example.com/**", "http://api.example.com@[2001:db8::1]/latest/api/token"},
	{web, "https://bücher.example/v1/admin/secret", "https://bücher.example/v1/admin", "https://bücher.example/v1/admin/**",
		"https://bücher.example/pub/**", "https://bücher.example/pub/../v1/admin/secret"},
	{web, "https://straße.example/v1/admin/secret", "https://straße.example/v1/admin", "https://straße.example/v1/admin/**",
		"https://straße.example/pub/**", "https://straße.example/pub/../v1/admin/secret"},
	{web, "wss://stream.example.com/admin/feed", "wss://stream.example.com/admin", "wss://stream.example.com/admin/**",
		"wss://stream.example.com/pub/**", "wss://stream.example.com/pub/../admin/feed"},
	{web, "ftp://ftp.example.com/secret/keys.txt", "ftp://ftp.example.com/secret", "ftp://ftp.example.com/secret/**",
		"ftp://ftp.example.com/pub/**", "ftp://ftp.example.com/pub/../secret/keys.txt"},
	{web, "https://api.example.com:8443/admin/secret", "https://api.example.com:8443/admin", "https://api.example.com:8443/admin/**",
		"https://api.example.com/**", "https://api.example.com@api.example.com:8443/admin/secret"},
	{service, "s3://bucket/secret/key.csv", "s3://bucket/secret", "s3://bucket/secret/**",
		"s3://bucket/pub/**", "s3://bucket/pub/../secret/key.csv"},
	{service, "ssh://build.example.com/srv/secret/k", "ssh://build.example.com/srv/secret", "ssh://build.example.com/srv/secret/**",
		"ssh://build.example.com/srv/pub/**", "ssh://build.example.com/srv/pub/../secret/k"},
	{service, "postgres://db.example.com/prod", "postgres://db.example.com", "postgres://db.example.com/**",
		"postgres://other.example/**", "postgres://other.example,db.example.com/prod"},
	{service, "jdbc:postgresql://db.example.com/prod", "jdbc:postgresql://db.example.com", "jdbc:postgresql://db.example.com/**",
		"jdbc:postgresql://other.example/**", "jdbc:postgresql://other.example,db.example.com/prod"},
	{service, "git+https://github.com/acme/secret", "git+https://github.com/acme", "git+https://github.com/acme/**",
		"git+https://github.com/pub/**", "git+https://github.com/pub/../acme/secret"},
	{file, "file:///etc/ssh/key", "file:///etc/ssh", "file:///etc/ssh/**",
		"file:///srv/pub/**", "file:///srv/pub/../../etc/ssh/key"},
	{file, "file:///etc/ssh/key", "/etc/ssh", "/etc/ssh/**",
		"file:///srv/pub/**", "file:///srv/pub/../../etc/ssh/key"},
	{name, "/srv/data/secret/k", "/srv/data/secret", "/srv/data/secret/**",
		"/srv/data/pub/**", "/srv/data/pub/../secret/k"},
	{name, "/etc/passwd", "/etc", "/etc/**",
		"/w/pub/**", "/w/pub/../../etc/passwd"},
	{name, "prod/secrets/db", "prod/secrets", "prod/secrets/**",
		"prod/pub/**", "prod/pub/../secrets/db"},
	{name, "arn:aws:s3:::prod/secret/key", "arn:aws:s3:::prod/secret", "arn:aws:s3:::prod/secret/**",
		"arn:aws:s3:::prod/pub/**", "arn:aws:s3:::prod/pub/../secret/key"},
	{name, "urn:example:prod/secret/key", "urn:example:prod/secret", "urn:example:prod/secret/**",
		"urn:example:prod/pub/**", "urn:example:prod/pub/../secret/key"},
	{windows, `C:\Windows\System32\SAM`, "c:/windows/system32", `C:\Windows\System32\**`,
		`C:\Users\**`, `C:\Users\..\Windows\System32\SAM`},
	{windows, `\\fs\share\secret\k.xlsx`, "//fs/share/secret", `\\fs\share\secret\**`,
		`\\fs\share\pub\**`, `\\fs\share\pub\..\secret\k.xlsx`},
	{address, "mailto:ceo@example.com", "mailto:@example.com", "mailto:*@example.com",
		"mailto:*@customers.example", "mailto:bob@customers.example,ceo@example.com"},
	{address, "ceo@example.com", "mailto:@example.com", "*@example.com",
		"*@customers.example", "bob@customers.example,ceo@example.com"},
	{address, "sms:+15550100", "sms:+15550100", "sms:+15550100",
		"sms:+1555*99", "sms:+15550199,+15550100"},
	{address, "tel:+15550100", "tel:+15550100", "tel:+15550100",
		"tel:+1555*99", "tel:+15550100"},
}

// guard is a forbidden resource with its compiled policies and the programs' readings of it.
type guard struct {
	forbidden
	policies map[string]*engine.Policy
	targets  map[string]string
	within   []string
}

// newGuards compiles the policies and gets the readings from the programs.
func newGuards(t *testing.T, a *asked) []*guard {
	t.Helper()
	var texts []string
	for _, f := range forbiddenResources {
		texts = append(texts, f.resource, f.around)
	}
	read := a.ask(t, texts)
	var all []*guard
	for i, f := range forbiddenResources {
		g := &guard{forbidden: f, targets: targets(read[2*i]), policies: map[string]*engine.Policy{}}
		for name, patterns := range map[string]struct{ allow, block []string }{
			"exact": {nil, []string{f.resource}}, "around": {nil, []string{f.block}}, "elsewhere": {[]string{f.allow}, nil},
		} {
			p, err := policy(patterns.allow, patterns.block)
			if err != nil {
				t.Errorf("the patterns %q: %v", patterns, err)
				continue
			}
			g.policies[name] = p
		}
		for target := range targets(read[2*i+1]) {
			g.within = append(g.within, target+"/", "windows:"+strings.ToLower(target)+"/")
		}
		for target, by := range maps.Clone(g.targets) {
			g.targets["windows:"+strings.ToLower(target)] = by
		}
		if f.form == windows { // other readings of the path are other places
			onWindows := func(target string) bool { return strings.HasPrefix(target, "windows:") }
			maps.DeleteFunc(g.targets, func(target, _ string) bool { return !onWindows(target) })
			g.within = slices.DeleteFunc(g.within, func(target string) bool { return !onWindows(target) })
		}
		all = append(all, g)
	}
	return all
}

// notAddress matches the readers that read an address as a path.
var notAddress = regexp.MustCompile("nfkc|posixpath|twice")

// breaks returns the policies that forbid a reading with this target. A reader that normalises
// by NFKC, or that decodes a file's URL twice, counts only for blocks. A reader of paths does
// not count for an address.
func (g *guard) breaks(target, reader string) []string {
	if g.form == address && notAddress.MatchString(reader) {
		return nil
	}
	policies := g.reached(target)
	if strings.Contains(reader, "nfkc") || g.form == file && strings.Contains(reader, "twice") {
		policies = slices.DeleteFunc(policies, func(p string) bool { return p == "elsewhere" })
	}
	return policies
}

func (g *guard) reached(target string) []string {
	if _, ok := g.targets[target]; ok {
		return []string{"exact", "around", "elsewhere"}
	}
	near := slices.ContainsFunc(g.within, func(dir string) bool { return strings.HasPrefix(target, dir) })
	switch g.form {
	case web, service: // some servers keep dot segments
	case address:
		domain, _ := strings.CutPrefix(g.around, "mailto:")
		local, of := strings.CutSuffix(target, domain)
		near = of && strings.HasPrefix(domain, "@") && strings.HasPrefix(local, "mailto:") && !strings.ContainsAny(local[len("mailto:"):], " ,;<>()[]:\"\\/?#%")
	default:
		near = near && !strings.Contains(target+"/", "/../")
	}
	if near {
		return []string{"around", "elsewhere"}
	}
	return nil
}
