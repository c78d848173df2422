package scrub

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"writ.example/writ/internal/scrub/scrubtest"
)

func newScrubber(t testing.TB) *Scrubber {
	t.Helper()
	s, err := New()
	if err != nil {
		t.Fatalf("New() = %v", err)
	}
	return s
}

// newTagger returns a Tagger with one key for each byte of keys. Each key repeats its
// byte. The default is one key of the byte 1.
func newTagger(t testing.TB, keys ...byte) *Tagger {
	t.Helper()
	if len(keys) == 0 {
		keys = []byte{1}
	}
	all := make([][]byte, len(keys))
	for i, k := range keys {
		all[i] = bytes.Repeat([]byte{k}, sha256.Size)
	}
	g, err := newScrubber(t).Tagger(all...)
	if err != nil {
		t.Fatalf("Tagger() = %v", err)
	}
	return g
}

// shape returns text with an ellipsis for the digits of each tag.
func shape(text string) string { return tagPattern.ReplaceAllString(text, "[$1:…]") }

var tagPattern = regexp.MustCompile(`\[([a-z0-9-]+):[A-Z2-7]{16}\]`)

func TestText(t *testing.T) {
	s := newScrubber(t)
	token := "gh" + "p_9fKq2LmX7wZb4Rt8Yv1Nc6Hd3Jg5Ps0Aq2We"
	tests := map[string]string{
		"":                                             "",
		"ci/" + token:                                  "ci/[redacted:github-pat]",
		token + "/" + token:                            "[redacted:github-pat]/[redacted:github-pat]",
		"a_" + token + "_b":                            "a_[redacted:github-pat]_b",
		"a%20" + token + "%20b":                        "a%20[redacted:github-pat]%20b",
		"mail ann@corp.test now":                       "mail [redacted:email-address] now",
		"mailto:ann@corp.test":                         "mailto:[redacted:email-address]",
		"ann%40corp.test":                              "[redacted:email-address]",
		"git@github.com:org/repo":                      "git@github.com:org/repo",
		"the password is hunter2.":                     "the password is [redacted:assigned-credential].",
		"The Password is Swordfish!, says ann":         "The Password is [redacted:assigned-credential], says ann",
		`my API key is "correct horse" now`:            `my API key is "[redacted:assigned-credential]" now`,
		"db credentials are now: root/toor99":          "db credentials are now: [redacted:assigned-credential]",
		"the password is [redacted:x] and 'secret is'": "the password is [redacted:x] and 'secret is'",
		"db;password=hunter2;x":                        "db;password=[redacted:assigned-credential];x",
		"https://x/**?token=*":                         "https://x/**?token=*",
		`metadata.token=="x"`:                          `metadata.token=="x"`,
		"https://u:pw@h/x":                             "https://[redacted:userinfo]@h/x",
		"u:p%40h/x":                                    "[redacted:userinfo]%40h/x",
		"scott:tiger@10.1.2.3":                         "[redacted:userinfo]@10.1.2.3",
		"registry/app:web@v1.2.3":                      "registry/app:web@v1.2.3",
		"app:1.0@sha256:0a1b":                          "app:1.0@sha256:0a1b",
		"4111 1111 1111 1111":                          "[redacted:card-number]",
		"card-4111111111111111x":                       "card-[redacted:card-number]x",
		"4111111111111112":                             "4111111111111112", // its check digit is wrong
		"9111111111111111":                             "9111111111111111", // of no network
		"%2534111111111111111":                         "[redacted:card-number]",
		`["\u0067hp_` + token[4:] + `"]`:               `["[redacted:github-pat]"]`,
		`'\x67hp_` + token[4:] + `'`:                   `'[redacted:github-pat]'`,
		"ann&#64;corp.test and bob&#x40;corp.test":     "[redacted:email-address] and [redacted:email-address]",
		"%u0061nn%u0040corp.test":                      "[redacted:email-address]",
		token[:9] + "\u200b" + token[9:] + "\ufeff é":  "[redacted:github-pat] é",
		"é ｇｈｐ＿" + token[4:] + "é":                     "é [redacted:github-pat]é",
		"４１１１ １１１１ １１１１ １１１１":                          "[redacted:card-number]",
		"été ﬁ ① à la carte 東京":                        "été ﬁ ① à la carte 東京",
		`C:\users\x41 &#x; &#99999999; %u00 \u12 \xz`:  `C:\users\x41 &#x; &#99999999; %u00 \u12 \xz`,
		`{"user":"a","password": "hunter2xx"}`:         `{"user":"a","password": "[redacted:assigned-credential]"}`,
		`{\"dbPassword\":\"hunter2xx\"}`:               `{\"dbPassword\":\"[redacted:assigned-credential]\"}`,
		"db_password: 'hunter2xx'":                     "db_password: '[redacted:assigned-credential]'",
		"X-Api-Key: hunter2xx":                         "X-Api-Key: [redacted:assigned-credential]",
		"Authorization: Basic aHVudGVy":                "Authorization: Basic [redacted:assigned-credential]",
		`secret = "hunter2xx"`:                         `secret = "[redacted:assigned-credential]"`,
		"mysql --password hunter2xx -h db":             "mysql --password [redacted:assigned-credential] -h db",
		"redis://:hunter2xx@h:6379":                    "redis://[redacted:userinfo]@h:6379",
		"4%25252531%2525253111":                        "[redacted:unreadable]",
		"100% of what %zz is no hex":                   "100% of what %zz is no hex",
	}
	for text, want := range tests {
		if got := s.Text(text); got != want {
			t.Errorf("Text(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestText_HidesTokensWithOddHeaders(t *testing.T) {
	s := newScrubber(t)
	encode := base64.RawURLEncoding.EncodeToString
	header, claims := `{"alg":"HS256","typ":"JWT"}`, encode([]byte(`{"sub":"4711","org_id":"nobody"}`))
	rest := "." + strings.Repeat("aB3-", 10)
	for name, token := range map[string]string{
		"indented":  encode([]byte("{\n  "+header[1:])) + "." + claims + rest,
		"carriage":  encode([]byte("{\r\n"+header[1:])) + "." + claims + rest,
		"tab":       encode([]byte("{\t"+header[1:])) + "." + claims + rest,
		"space":     encode([]byte("{ "+header[1:])) + "." + claims + rest,
		"unsigned":  encode([]byte(header)) + "." + claims + ".",
		"encrypted": encode([]byte(`{"alg":"RSA-OAEP","enc":"A256GCM"}`)) + rest + rest + rest + rest,
		"direct":    encode([]byte(`{"alg":"dir","enc":"A256GCM"}`)) + "." + rest + rest + rest,
	} {
		if got, want := s.Text("/v1/"+token), "/v1/[redacted:jwt]"; strings.TrimSuffix(got, ".") != want {
			t.Errorf("%s: Text(%q) = %q, want %q", name, token, got, want)
		}
	}
}

func TestText_HidesCanariesInEverySpelling(t *testing.T) {
	s := newScrubber(t)
	for seed := range uint64(5) {
		for _, c := range scrubtest.Canaries(seed) {
			for _, text := range spellings(c.Value) {
				got := s.Text(text)
				plain := got
				for range maxRounds - 1 {
					if decoded, err := url.PathUnescape(plain); err == nil {
						plain = decoded
					}
				}
				if strings.Contains(plain, c.Hidden()) || !strings.Contains(got, "[redacted:") {
					t.Errorf("%s: Text(%q) = %q", c.Name, text, got)
				}
				if again := s.Text(got); again != got {
					t.Errorf("Text(%q) = %q: scrubbing twice differs from once", got, again)
				}
				if _, found := s.Find(text); !found {
					t.Errorf("%s: Find(%q) found nothing", c.Name, text)
				}
			}
		}
	}
}

// spellings returns texts that contain secret in the spellings that callers may send.
func spellings(secret string) []string {
	var escaped strings.Builder
	for i := range len(secret) {
		escaped.WriteString("%" + string("0123456789ABCDEF"[secret[i]>>4]) + string("0123456789ABCDEF"[secret[i]&15]))
	}
	return []string{
		secret, "key is " + secret + ", keep it", "/v1/" + secret + "/x", `"` + secret + `"`, "(" + secret + ")",
		"ci " + secret, "[" + secret + "]", url.PathEscape(secret), url.QueryEscape(secret), escaped.String(),
		"x/" + url.PathEscape(escaped.String()),
	}
}

func TestText_LeavesOrdinaryTextAlone(t *testing.T) {
	s := newScrubber(t)
	for _, text := range []string{
		"https://api.payments.example/v1/refunds", "https://api.payments.example:8443/v1/accounts/*/close",
		"123e4567-e89b-12d3-a456-426614174000", "0c0ffee0-0000-4000-8000-000000000001", "01a1fe16-6700-7f79-840b-7f1555d889cc",
		"sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", "arn:aws:iam::123456789012:role/deployer",
		"arn:aws:secretsmanager:eu-west-1:123456789012:secret:prod/db-AbCdEf", "s3://bucket/key/part-00001.parquet",
		"git@github.com:acme/app.git", "ssh://git@github.com/acme/app", "npm:@scope/pkg@1.2.3", "maven:org.slf4j:slf4j-api@2.0.1",
		"pkg:docker/acme/app@sha256%3Ae3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
		"projects/acme/serviceAccounts/ci@acme.iam.gserviceaccount.com", "pkg:npm/left-pad@1.3.0",
		"ghcr.io/acme/app:1.2@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
		"payments above 250.00 wait for finance", "Nobody may rotate the password or the API key of production without a person.",
		"The password is required, and the secret is rotated weekly.", "the token is not valid", "credentials are shared", "the key is missing",
		"a secret was found, or nobody looked", "no token was seen", "the key was told to nobody", "the secret is the same",
		"the passphrase is never by an agent", "the password is ${DB_PASSWORD}",
		"token budget: 200000", "max_tokens=4096", "2026-11-21T10:00:00.123456789Z", "1795264543000000000", "+49 30 901820",
		"mailto:*@customers.example", "mailto:legal@*", "repo:acme/app@main", "team-a/*", "sql.write", "intent.cost.amount_minor > 5000 && intent.metadata.env == 'prod'",
		`{"metadata.access_level":{"$in":["admin","operator"]}}`, "https://user.example/a@b", "C:/Users/x", "10:30 @ noon",
	} {
		if got := s.Text(text); got != text {
			t.Errorf("Text(%q) = %q, want it unchanged", text, got)
		}
		if kind, found := s.Search()("pattern", text); found {
			t.Errorf("Search of the pattern %q = %s, want nothing", text, kind)
		}
	}
}

// TestAsASCII_MakesAllThatLooksLikeASCII checks that characters that look like ASCII
// become ASCII. All other characters stay, because some are eleven times as long in their
// compatibility form.
func TestAsASCII_MakesAllThatLooksLikeASCII(t *testing.T) {
	for c := rune(utf8.RuneSelf); c <= unicode.MaxRune; c++ {
		text := string(c)
		want := norm.NFKC.String(text)
		if want == text || strings.ContainsFunc(want, func(r rune) bool { return r >= utf8.RuneSelf }) {
			want = ""
		}
		if got, n := asASCII(text); got != want && n > 0 || n == 0 && want != "" {
			t.Errorf("asASCII(%U) = %q, %d, want %q", c, got, n, want)
		}
	}
}

func TestText_BoundsItsWork(t *testing.T) {
	s := newTagger(t)
	var b strings.Builder
	for b.Len() < 8192 {
		for _, r := range s.rules {
			for _, k := range r.keywords {
				b.WriteString(k + " = " + strings.Repeat("a", 100) + " ")
			}
		}
	}
	if got, want := s.Text(b.String()), "[redacted:unreadable]"; got != want {
		t.Errorf("Text of every keyword = %.60q…, want %q", got, want)
	}
	raw := "x?" + b.String()
	if got, want := shape(s.Resource(raw, "x")), "[unreadable:…]"; got != want {
		t.Errorf("Resource of every keyword = %.60q…, want %q", got, want)
	}
	many := make(map[string]string)
	for i := range 64 {
		many[string(rune('A'+i))] = strings.Repeat("twitter = "+strings.Repeat("a", 90)+" ", 40)
	}
	if unread := strings.Count(fmt.Sprint(s.Values(many)), redacted(KindUnread, "")); unread < 50 {
		t.Errorf("Values of much metadata left %d of 64 unread, want one bound for all", unread)
	}
	search, refused := s.Search(), 0
	for key, value := range many {
		if kind, _ := search(key, value); kind == KindUnread {
			refused++
		}
	}
	if refused < 16 {
		t.Errorf("Search of a large document left %d of 64 unread, want one bound for all", refused)
	}
	var mails strings.Builder
	for i := 0; i*mails.Len() <= 8*maxWork; i++ {
		fmt.Fprintf(&mails, "a@b%c%c.de ", 'a'+i/26, 'a'+i%26)
	}
	if got, want := shape(s.Resource(mails.String(), mails.String())), "[unreadable:…]"; got != want {
		t.Errorf("Resource of many secrets = %.60q…, want %q", got, want)
	}
	echo := "https://h/e?x=1" + strings.Repeat("&token=reda&token=redact&token=cted", 30)
	if got, want := shape(s.Resource(echo, "https://h/edacte/reda")), "https://h/edacte/[assigned-credential:…]"; got != want {
		t.Errorf("Resource of secrets that are in what replaces them = %.90q…, want %q", got, want)
	}
	long := strings.Repeat("an ordinary api key = none, ", 300)
	if got := s.Text(long); got != long {
		t.Errorf("Text of much ordinary text = %.60q…, want it unchanged", got)
	}
}

func TestValue(t *testing.T) {
	s := newScrubber(t)
	random := "fG8sK2lPq9Zx7Wv3Nb1Tm5Yc"
	tests := []struct{ key, value, want string }{
		{"password", "x", "[redacted:named-credential]"},
		{"X-Api-Key", "1", "[redacted:named-credential]"},
		{"githubToken", "abc", "[redacted:named-credential]"},
		{"db.password_hash", "abc", "[redacted:named-credential]"},
		{"pass\u200bword", "x", "[redacted:named-credential]"},
		{"pass%77ord", "x", "[redacted:named-credential]"},
		{"Cookie", "a=b", "[redacted:named-credential]"},
		{"password", "", ""},
		{"max_tokens", "4096", "4096"},
		{"token_count", "12", "12"},
		{"secret_name", "prod/db", "prod/db"},
		{"primary_key", "id", "id"},
		{"env", "prod", "prod"},
		{"datadog", random + "0123456789abcdef", "[redacted:datadog-access-token]"},
		{"api_key_2_of_ci", random, "[redacted:generic-api-key]"},
		{"note", random, random},
		{"note", "see ann@corp.test", "see [redacted:email-address]"},
	}
	for _, test := range tests {
		if got := s.Values(map[string]string{test.key: test.value})[test.key]; got != test.want {
			t.Errorf("Values({%q: %q}) = %q, want %q", test.key, test.value, got, test.want)
		}
	}
	if kind, found := s.Search()("password", "rotate it weekly"); found {
		t.Errorf("Search of a sentence about a password = %s, want nothing", kind)
	}
	for _, text := range []string{`{"metadata.token":"production"}`, "the password: never by an agent", "the password is hunter2", "deploy --token required"} {
		if kind, found := s.Search()("condition", text); found {
			t.Errorf("Search of %q = %s, want nothing", text, kind)
		}
	}
	if kind, _ := s.Search()("api_key", random); kind != generic {
		t.Errorf("Search of an API key = %q, want %s", kind, generic)
	}
}

func TestResource(t *testing.T) {
	s := newTagger(t)
	key := "AK" + "IAQ3EGRX7NSTQ2WZ4L"
	tests := []struct{ raw, kept, want string }{
		{"https://h/a;jsessionid=1/b", "", "https://h/a/b"},
		{"https://h/a;v=2;jsessionid=1/b;w=3/c", "", "https://h/a/b/c"},
		{"https://h/a;v=2;password=b/c", "", "https://h/a"},
		{"https://h/a;v=jdbc:oracle:thin:scott/tiger@db:1521/b", "", "https://h/[userinfo:…]@db:1521/b"},
		{"https://h/a%3Bjsessionid%3D1/b", "", "https://h/a/b"},
		{"https://h/p%3Ftoken=abc", "", "https://h/p"},
		{"https://h/p%3Fwhat", "", "https://h/p%3Fwhat"},
		{"https://h/c%23/x", "", "https://h/c%23/x"},
		{"jdbc:oracle:thin:user/pw@host", "", "[userinfo:…]@host"},
		{"user:pa/ss@host/x", "", "[userinfo:…]@host/x"},
		{"jdbc:sqlserver://h:1433;databaseName=x;password=a/b", "", "jdbc:sqlserver://h:1433"},
		{"u:p%40h/x", "", "[userinfo:…]%40h/x"},
		{"/u:p@h/x", "", "/[userinfo:…]@h/x"},
		{"https://h/u:p@g/x", "", "https://h/[userinfo:…]@g/x"},
		{"https://h:8443/@ann/x", "", "https://h:8443/@ann/x"},
		{"https://h/@scope/pkg@1.2", "", "https://h/@scope/pkg@1.2"},
		{"queue;orders", "", "queue;orders"},
		{"https://h/a;x;v=1/;b/c%3Bw%3D2;z/d;", "", "https://h/a/;b/c/d;"},
		{"https://h/data?token=a&token=e", "https://h/data", "https://h/data"},
		{"https://h/data?token=Data&token=redacted&token=data", "https://h/data", "https://h/[assigned-credential:…]"},
		{"https://" + key + ".example/x", "https://" + strings.ToLower(key) + ".example/x", "https://[aws-access-token:…].example/x"},
		{"https://%41K" + key[2:] + ".example/x", "https://" + strings.ToLower(key) + ".example/x", "https://[aws-access-token:…].example/x"},
	}
	for _, test := range tests {
		if test.kept == "" {
			test.kept = test.raw
		}
		got := s.Resource(test.raw, test.kept)
		if shape(got) != test.want {
			t.Errorf("Resource(%q) = %q, want %q", test.raw, got, test.want)
		}
		if again := s.Resource(got, got); again != got {
			t.Errorf("Resource(%q) = %q: scrubbing twice differs from once", got, again)
		}
	}
}
