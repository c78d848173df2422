package ledger

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
	"writ.example/writ/internal/scrub"
	"writ.example/writ/storage"
	"writ.example/writ/storage/receipt"
)

func TestDecision_Audit_MinimalStoresKeysAndNothingElseOfTheRequest(t *testing.T) {
	store, l := openFake(t)
	in := intent(1)
	got := mustDecide(t, l, "acme", in).Record
	want := &storage.Record{
		OrganizationID: "acme",
		IntentID:       in.IntentID,
		IntentDigest:   IntentDigest(in),
		DecisionID:     got.DecisionID,
		PolicyID:       in.PolicyID,
		PolicyVersion:  3,
		AgentID:        "team-a/deployer",
		ActionType:     "deploy",
		Resource:       "https://example.com/prod",
		Cost:           &engine.Cost{AmountMinor: 1250, Currency: "EUR"},
		MetadataKeys:   []string{"env", "ticket"},
		Decision:       engine.Allow,
		Reasons:        []string{"policy.test: the test decided so"},
		Receipt:        got.Receipt,
		IssuedAt:       in.IssuedAt,
		DecidedAt:      noon,
		Credential:     "operator:alice",
		AuditDigest:    AuditDigest(got),
		Findings:       []storage.Finding{{Code: "policy.test", Outcome: engine.Allow, Decides: true}},
		LeftOut:        []string{"metadata.env", "metadata.ticket", "resource"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the minimal projection (-want +got):\n%s", diff)
	}
	for _, secret := range []string{"OPS-7", "password", "token", "secret", "fragment"} {
		if strings.Contains(store.order[0].bytes, secret) {
			t.Errorf("the stored record has %q in it: %s", secret, store.order[0].bytes)
		}
	}
}

func TestDecision_Audit_FullStoresScrubbedValues(t *testing.T) {
	store, l := openFake(t, func(c *Config) { c.Audit = Full })
	got := mustDecide(t, l, "acme", intent(1)).Record
	want := map[string]string{"env": "prod", "ticket": "[scrubbed]"}
	if diff := cmp.Diff(want, got.Metadata); diff != "" {
		t.Errorf("metadata in mode full (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"env", "ticket"}, got.MetadataKeys); diff != "" {
		t.Errorf("metadata keys in mode full (-want +got):\n%s", diff)
	}
	if strings.Contains(store.order[0].bytes, "OPS-7") {
		t.Errorf("the stored record has a raw value: %s", store.order[0].bytes)
	}
	bare := intent(2)
	bare.Metadata = nil
	if got := mustDecide(t, l, "acme", bare).Record; got.Metadata != nil || got.MetadataKeys != nil {
		t.Errorf("metadata of none = %v, %v", got.Metadata, got.MetadataKeys)
	}
}

// TestDecision_Audit_FullKeepsWhatWasSent checks the modes full and minimal. A row may store the
// resource, the agent id or the time in another form than the request. In the mode full it also
// stores the sent form, unless that form contains a secret or user info. In the mode minimal it
// never does.
func TestDecision_Audit_FullKeepsWhatWasSent(t *testing.T) {
	scrubber, err := scrub.New()
	must(t, err)
	tagger, err := scrubber.Tagger(make([]byte, 32))
	must(t, err)
	token := "ghp_" + strings.Repeat("a1B2", 9)
	for _, tt := range []struct {
		agent, resource, issuedAt string
		want                      storage.Sent
	}{
		{},
		{agent: "Team-A/Deployer", want: storage.Sent{AgentID: "Team-A/Deployer"}},
		{agent: "Bob@corp.example"},
		{agent: token},
		{issuedAt: "2026-11-21T10:00:00.1234567890Z", want: storage.Sent{IssuedAt: "2026-11-21T10:00:00.1234567890Z"}},
		{issuedAt: "2026-11-21T10:00:00.4111111111111111Z"},
		{resource: "prod/../stage", want: storage.Sent{Resource: "prod/../stage"}},
		{resource: "HTTPS://Example.com:443/@scope/a", want: storage.Sent{Resource: "HTTPS://Example.com:443/@scope/a"}},
		{resource: "/data//what?.txt", want: storage.Sent{Resource: "/data//what?.txt"}},
		{resource: "/data//warehouse#3", want: storage.Sent{Resource: "/data//warehouse#3"}},
		{resource: "HTTPS://Example.com:443/a?b=c#d", want: storage.Sent{Resource: "HTTPS://Example.com:443/a?b=c#d"}},
		{resource: "HTTPS://Example.com:443/a#d", want: storage.Sent{Resource: "HTTPS://Example.com:443/a#d"}},
		{resource: "https://b.s3.amazonaws.com/k?X-Amz-Expires=60&X-Amz-Signature=7e1d09"},
		{resource: "https://storage.googleapis.com/b/k?X-Goog-Expires=60&X-Goog-Signature=7e1d09"},
		{resource: "https://a.blob.core.windows.net/c/b?sv=2024-11-04&sp=r&sig=q7Gh%2Bx%3D"},
		{resource: "https://d111.cloudfront.net/a?Expires=1&Signature=abc&Key-Pair-Id=K1"},
		{resource: "https://example.com/a?code=4%2F0AX&state=xyz"},
		{resource: "https://example.com/a#access_token=abc"},
		{resource: "https://example.com/a?auth=abc"},
		{resource: "https://example.com/a?session=abc"},
		{resource: "https://example.com/a?sid=abc&ticket=ST-1"},
		{resource: "https://example.com/a?hmac=abc"},
		{resource: "https://example.com/a?x_sig=abc"},
		{resource: "https://example.com/a?%73ig=abc"},
		{resource: "https://example.com/a?%2573ig=abc"},
		{resource: "https://EXAMPLE.com/a?%73ig=%zz"},
		{resource: "/data//100%", want: storage.Sent{Resource: "/data//100%"}},
		{resource: "https://EXAMPLE.com/a?barcode=4", want: storage.Sent{Resource: "https://EXAMPLE.com/a?barcode=4"}},
		{resource: "https://user@example.com/a?b=c"},
		{resource: "https://user:pw@example.com/a"},
		{resource: "https://:@example.com/a"},
		{resource: "ssh://git@example.com/a//b"},
		{resource: "postgres://a%40b@h/db"},
		{resource: "postgres://u@h1,u@h2/db"},
		{resource: "file://u@host/a/../b"},
		{resource: "user:pw@host/a//b"},
		{resource: "https://example.com/a?user=x@y"},
		{resource: "https://example.com/a?token=" + token},
		{resource: "https://example.com/a?password=hunter22"},
		{resource: "https://example.com/a?x=1&api_key=q"},
		{resource: "https://example.com/a?%70assword=hunter22"},
		{resource: "https://example.com/a;jsessionid=1"},
		{resource: "https://example.com/a?to=bob@corp.example"},
		{resource: "/data/x?key=1&secret=q"},
		{resource: "/a?b/../c", want: storage.Sent{Resource: "/a?b/../c"}},
	} {
		in := intent(1)
		in.Resource = "prod"
		for to, text := range map[*string]string{&in.AgentID: tt.agent, &in.Resource: tt.resource, &in.IssuedAt: tt.issuedAt} {
			if text != "" {
				*to = text
			}
		}
		for mode, want := range map[Mode]storage.Sent{Minimal: {}, Full: tt.want} {
			store, l := openFake(t, func(c *Config) { c.Audit, c.Scrub = mode, tagger })
			got := mustDecide(t, l, "acme", in).Record
			if diff := cmp.Diff(want, got.Sent); diff != "" {
				t.Errorf("%+v in mode %s (-want +got):\n%s", tt, mode, diff)
			}
			if stored := store.order[0].bytes; tt.want == (storage.Sent{}) && strings.Contains(stored, `"sent"`) {
				t.Errorf("%+v in mode %s is stored as %s", tt, mode, stored)
			}
			if whole := got.Intent(); mode == Full && tt.want != (storage.Sent{}) && (whole.AgentID != in.AgentID || whole.Resource != in.Resource || whole.IssuedAt != in.IssuedAt) {
				t.Errorf("the row's intent is %+v, want %+v", whole, in)
			}
		}
	}
}

// TestDecision_Audit_NoSignatureOfALinkIsKept checks that the mode full stores no value of a query,
// a fragment or a parameter whose name says that it grants access.
func TestDecision_Audit_NoSignatureOfALinkIsKept(t *testing.T) {
	const value = "q7Zr0xWn"
	scrubber, err := scrub.New()
	must(t, err)
	tagger, err := scrubber.Tagger(make([]byte, 32))
	must(t, err)
	for _, name := range []string{
		"sig", "signature", "Signature", "X-Amz-Signature", "X-Amz-Security-Token", "X-Goog-Signature", "token", "access_token", "key",
		"Key-Pair-Id", "Policy", "hmac", "%73ig", "code", "sid", "auth", "ticket", "x_sig",
	} {
		for _, link := range []string{
			"HTTPS://Files.example.com/a?%s=%s", "https://files.example.com/a//b?x=1&%s=%s", "https://files.example.com/a?x=1;%s=%s",
			"https://files.example.com/a#%s=%s", "https://files.example.com/a;%s=%s", "https://files.example.com/a;x=1;%s=%s/../b",
			"https://files.example.com/a%%3F%s=%s", "https://files.example.com/a%%3f%s%%3d%s", "https://files.example.com/a%%23%s=%s",
			"ftp://files.example.com/a//b?%s=%s",
			"s3://bucket/a//b?%s=%s", "S3://bucket/a?%s=%s", "jdbc:postgresql://db/a?%s=%s", "jdbc:sqlserver://db;%s=%s",
			"file:///a//b?%s=%s", "files.example.com//a?%s=%s", "//files.example.com/a?%s=%s", "/a//b?%s=%s", "a/../b?x=1&%s=%s", "a?%s=%s/../b",
			`C:\a\..\b?%s=%s`, "sms:+4915112345678?%s=%s", "https://files.example.com/a?%s=%s/../b",
		} {
			in := intent(1)
			in.Resource = fmt.Sprintf(link, name, value)
			if in.Validate() != nil {
				continue
			}
			store, l := openFake(t, func(c *Config) { c.Audit, c.Scrub = Full, tagger })
			mustDecide(t, l, "acme", in)
			if stored := store.order[0].bytes; strings.Contains(stored, value) {
				t.Errorf("%s is stored as %s", in.Resource, stored)
			}
		}
	}
}

func TestDecision_Audit_EitherModeScrubsAllItKeeps(t *testing.T) {
	for _, mode := range []Mode{Minimal, Full} {
		store, l := openFake(t, func(c *Config) { c.Audit = mode })
		in := intent(1)
		in.AgentID, in.ActionType, in.Resource = "bot-hunter1", "deploy.hunter2", "prod/hunter3"
		in.Metadata = map[string]string{"hunter4": "a", "hunter5": "b", "env": "hunter6", "zone": "eu"}
		asked := entry(in, engine.Allow)
		asked.Credential = "operator:hunter7"
		got, err := decide(t.Context(), l, "acme", asked)
		must(t, err)
		r := got.Record
		kept := []string{r.AgentID, r.ActionType, r.Resource, r.Credential, strings.Join(r.MetadataKeys, " ")}
		want := []string{"[tagged]", "[tagged]", "[scrubbed]", "operator:[tagged]", "[scrubbed] env zone"}
		if diff := cmp.Diff(want, kept); diff != "" {
			t.Errorf("%s keeps (-want +got):\n%s", mode, diff)
		}
		if mode == Full {
			want := map[string]string{"[scrubbed]": "a", "env": "[scrubbed]", "zone": "eu"}
			if diff := cmp.Diff(want, r.Metadata); diff != "" {
				t.Errorf("metadata in mode full (-want +got):\n%s", diff)
			}
		}
		if strings.Contains(store.order[0].bytes, "hunter") {
			t.Errorf("%s stores a secret: %s", mode, store.order[0].bytes)
		}
		if r.IntentDigest != IntentDigest(in) {
			t.Errorf("%s: the digest is not of the intent as it was sent", mode)
		}
		if again := mustDecide(t, l, "acme", in); !again.Replayed || cmp.Diff(r, again.Record) != "" {
			t.Errorf("%s: the same intent again = %+v, want the first record", mode, again)
		}
	}
}

func TestDecision_Audit_TimesKeepNoMoreThanNanoseconds(t *testing.T) {
	for issuedAt, want := range map[string]string{
		"2026-11-21T10:00:00Z":                       "2026-11-21T10:00:00Z",
		"2026-11-21T10:00:00.123456789+01:00":        "2026-11-21T10:00:00.123456789+01:00",
		"2026-11-21T10:00:00.4111111111111111Z":      "2026-11-21T10:00:00.411111111Z",
		"2026-11-21T10:00:00.4111111111111111-05:30": "2026-11-21T10:00:00.411111111-05:30",
	} {
		store := newFake()
		in := intent(1)
		in.IssuedAt = issuedAt
		r := mustDecide(t, open(t, store), "acme", in).Record
		if r.IssuedAt != want || r.IntentDigest != IntentDigest(in) {
			t.Errorf("%s is stored as %s with digest %s, want %s and the digest of the intent", issuedAt, r.IssuedAt, r.IntentDigest, want)
		}
	}
}

func TestConfig_RefusesWhatIsUnsafe(t *testing.T) {
	tests := map[string]struct {
		change func(*Config)
		want   string // a part of the error; empty if there is no error
	}{
		"defaults":                     {func(*Config) {}, ""},
		"full":                         {func(c *Config) { c.Audit = Full }, ""},
		"no scrubber":                  {func(c *Config) { c.Scrub = nil }, "no scrubber"},
		"unknown mode":                 {func(c *Config) { c.Audit = "all" }, `audit mode "all"`},
		"no store":                     {func(c *Config) { c.Store = nil }, "no store"},
		"no signer":                    {func(c *Config) { c.Signer = nil }, "no signer"},
		"negative lifetime":            {func(c *Config) { c.TTL = -time.Second }, "receipt lifetime -1s"},
		"lifetime below a second":      {func(c *Config) { c.TTL = time.Millisecond }, "receipt lifetime 1ms"},
		"lifetime not in full seconds": {func(c *Config) { c.TTL = 1500 * time.Millisecond }, "receipt lifetime 1.5s"},
		"negative queue":               {func(c *Config) { c.QueueLimit = -1 }, "queue limit -1"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			cfg := Config{Store: newFake(), Signer: testSigner(1), Scrub: marking{}}
			test.change(&cfg)
			l, err := Open(t.Context(), cfg)
			if test.want == "" {
				if err != nil {
					t.Fatalf("Open = %v, want nil", err)
				}
				if err := l.Close(t.Context()); err != nil {
					t.Errorf("Close = %v", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Open = %v, want an error with %q", err, test.want)
			}
		})
	}
}

func TestIntentDigest_IsOfTheCanonicalJSON(t *testing.T) {
	tests := map[string]*engine.Intent{
		"full":           intent(1),
		"no cost":        {IntentID: "i", PolicyID: "p", AgentID: "a", ActionType: "t", Resource: "r", IssuedAt: "x"},
		"empty metadata": {Metadata: map[string]string{}},
		"metadata beyond the basic plane": {
			Metadata: map[string]string{"\U0001F600": "a", "\uFB33": "b", "a\"b": "c\n", "": "\u2028"}},
		"many keys": {Metadata: many(100)},
		"limits":    {Cost: &engine.Cost{AmountMinor: condition.MaxInteger, Currency: "EUR"}},
	}
	for name, in := range tests {
		t.Run(name, func(t *testing.T) {
			sent, err := json.Marshal(in)
			must(t, err)
			canonical := jsontext.Value(sent)
			must(t, canonical.Canonicalize())
			if got, want := string(appendIntent(nil, in)), string(canonical); got != want {
				t.Errorf("the canonical intent\n got %s\nwant %s", got, want)
			}
			if got, want := IntentDigest(in), receipt.DigestBytes(canonical); got != want {
				t.Errorf("IntentDigest = %s, want %s", got, want)
			}
		})
	}
}

func many(n int) map[string]string {
	m := make(map[string]string)
	for i := range n {
		m[fmt.Sprint("key", i)] = strings.Repeat("v", 100)
	}
	return m
}

func TestIntentDigest_ExampleOfTheDocumentation(t *testing.T) {
	in := &engine.Intent{
		IntentID: "7d9f1c1e-3b5a-4f5e-8a67-0d6f0a4b2c11", PolicyID: "2f0c3c64-94f4-4b8e-bb0b-0f6f3f3f9d20",
		AgentID: "ci", ActionType: "deploy", Resource: "prod/web", IssuedAt: "2026-11-21T10:00:00Z",
	}
	doc, err := os.ReadFile("doc.go")
	must(t, err)
	for _, want := range []string{string(appendIntent(nil, in)), IntentDigest(in)} {
		if !strings.Contains(string(doc), want) {
			t.Errorf("the package documentation lacks %s", want)
		}
	}
}
