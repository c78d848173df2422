package engine_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"writ.example/writ/bench/corpus"
	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
	"writ.example/writ/engine/resource"
	"writ.example/writ/internal/must"
)

// fields returns the fields that err names. It returns nil if err is nil.
func fields(t *testing.T, err error) []string {
	t.Helper()
	if err == nil {
		return nil
	}
	var inv *engine.InvalidError
	if !errors.As(err, &inv) {
		t.Fatalf("error is a %T (%v), want an *InvalidError", err, err)
	}
	var names []string
	for _, f := range inv.Fields {
		if f.Message == "" {
			t.Errorf("field %s has no message", f.Field)
		}
		names = append(names, f.Field)
	}
	return names
}

// changed is a change of a valid document, and the fields that are invalid after the change.
type changed[T any] struct {
	name   string
	change func(*T)
	want   []string
}

// validates checks that validate names the invalid fields of each changed document.
func validates[T any](t *testing.T, valid func() *T, validate func(*T) error, all []changed[T]) {
	t.Helper()
	for _, tt := range all {
		t.Run(tt.name, func(t *testing.T) {
			doc := valid()
			tt.change(doc)
			if diff := cmp.Diff(tt.want, fields(t, validate(doc))); diff != "" {
				t.Errorf("Validate names other fields (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDecision_Evaluation_InvalidIntents(t *testing.T) {
	many := func(n int) map[string]string {
		m := map[string]string{}
		for i := range n {
			m[strings.Repeat("k", i+1)] = "v"
		}
		return m
	}
	validates(t, corpus.AllowedIntent, (*engine.Intent).Validate, []changed[engine.Intent]{
		{"valid", func(*engine.Intent) {}, nil},
		{"no cost and no metadata", func(in *engine.Intent) { in.Cost, in.Metadata = nil, nil }, nil},
		{"text in metadata", func(in *engine.Intent) { in.Metadata = map[string]string{"note": "two\n\tlines"} }, nil},
		{"free cost", func(in *engine.Intent) { in.Cost.AmountMinor = 0 }, nil},
		{"greatest cost", func(in *engine.Intent) { in.Cost.AmountMinor = condition.MaxInteger }, nil},
		{"fraction and offset in the time", func(in *engine.Intent) { in.IssuedAt = "2026-01-31T09:30:00.123+02:00" }, nil},
		{"empty", func(in *engine.Intent) { *in = engine.Intent{} }, []string{
			"intent.intent_id", "intent.policy_id", "intent.agent_id", "intent.action_type", "intent.resource", "intent.issued_at",
		}},
		{"id without hyphens", func(in *engine.Intent) { in.IntentID = strings.ReplaceAll(in.IntentID, "-", "") }, []string{"intent.intent_id"}},
		{"id in braces", func(in *engine.Intent) { in.IntentID = "{" + in.IntentID + "}" }, []string{"intent.intent_id"}},
		{"id not normalised", func(in *engine.Intent) { in.PolicyID = strings.ToUpper(in.PolicyID) }, []string{"intent.policy_id"}},
		{"negative cost", func(in *engine.Intent) { in.Cost.AmountMinor = -1 }, []string{"intent.cost.amount_minor"}},
		{"unsafe cost", func(in *engine.Intent) { in.Cost.AmountMinor = condition.MaxInteger + 1 }, []string{"intent.cost.amount_minor"}},
		{"least cost", func(in *engine.Intent) { in.Cost.AmountMinor = math.MinInt64 }, []string{"intent.cost.amount_minor"}},
		{"currency in lower case", func(in *engine.Intent) { in.Cost.Currency = "eur" }, []string{"intent.cost.currency"}},
		{"currency too long", func(in *engine.Intent) { in.Cost.Currency = "EURO" }, []string{"intent.cost.currency"}},
		{"currency missing", func(in *engine.Intent) { in.Cost.Currency = "" }, []string{"intent.cost.currency"}},
		{"long agent", func(in *engine.Intent) { in.AgentID = strings.Repeat("a", 257) }, []string{"intent.agent_id"}},
		{"agent with a newline", func(in *engine.Intent) { in.AgentID = "a\nb" }, []string{"intent.agent_id"}},
		{"agent with spaces around", func(in *engine.Intent) { in.AgentID = " a" }, []string{"intent.agent_id"}},
		{"agent that is not UTF-8", func(in *engine.Intent) { in.AgentID = "a\xff" }, []string{"intent.agent_id"}},
		{"long action", func(in *engine.Intent) { in.ActionType = strings.Repeat("a", 129) }, []string{"intent.action_type"}},
		{"action with a wildcard", func(in *engine.Intent) { in.ActionType = "sql.*" }, []string{"intent.action_type"}},
		{"action with a space", func(in *engine.Intent) { in.ActionType = "sql write" }, []string{"intent.action_type"}},
		{"action with a look-alike", func(in *engine.Intent) { in.ActionType = "sqӏ.drop" }, []string{"intent.action_type"}},
		{"long resource", func(in *engine.Intent) { in.Resource = strings.Repeat("a", 4097) }, []string{"intent.resource"}},
		{"resource with a NUL", func(in *engine.Intent) { in.Resource = "a\x00" }, []string{"intent.resource"}},
		{"resource encoded twice", func(in *engine.Intent) { in.Resource = "https://h/a%252fb" }, []string{"intent.resource"}},
		{"65 metadata keys", func(in *engine.Intent) { in.Metadata = many(65) }, []string{"intent.metadata"}},
		{"empty metadata key", func(in *engine.Intent) { in.Metadata = map[string]string{"": "v"} }, []string{"intent.metadata"}},
		{"long metadata key", func(in *engine.Intent) { in.Metadata = map[string]string{strings.Repeat("k", 129): "v"} }, []string{"intent.metadata"}},
		{"metadata key with a NUL", func(in *engine.Intent) { in.Metadata = map[string]string{"k\x00": "v"} }, []string{"intent.metadata"}},
		{"long metadata value", func(in *engine.Intent) { in.Metadata = map[string]string{"k": strings.Repeat("v", 4097)} }, []string{"intent.metadata.k"}},
		{"metadata value with an escape", func(in *engine.Intent) { in.Metadata = map[string]string{"k": "\x1b[2J"} }, []string{"intent.metadata.k"}},
		{"date alone", func(in *engine.Intent) { in.IssuedAt = "2026-01-31" }, []string{"intent.issued_at"}},
		{"comma before the fraction", func(in *engine.Intent) { in.IssuedAt = "2026-01-31T09:30:00,5Z" }, []string{"intent.issued_at"}},
		{"30 February", func(in *engine.Intent) { in.IssuedAt = "2026-02-30T09:30:00Z" }, []string{"intent.issued_at"}},
	})
}

func TestActionPolicy_Validate(t *testing.T) {
	amount := func(n int64) *int64 { return &n }
	validates(t, corpus.ReferencePolicy, (*engine.ActionPolicy).Validate, []changed[engine.ActionPolicy]{
		{"valid", func(*engine.ActionPolicy) {}, nil},
		{"nothing optional", func(p *engine.ActionPolicy) {
			p.DeniedActionTypes, p.AllowedResourcePatterns, p.BlockedResourcePatterns, p.MaxCostMinor, p.Currency = nil, nil, nil, nil, ""
		}, nil},
		{"nothing allowed", func(p *engine.ActionPolicy) { p.AllowedActionTypes = []string{} }, nil},
		{"agent is a glob", func(p *engine.ActionPolicy) { p.AgentID = "team-{a,b}/*" }, nil},
		{"empty", func(p *engine.ActionPolicy) { *p = engine.ActionPolicy{} }, []string{
			"policy.policy_id", "policy.version", "policy.organization_id", "policy.agent_id",
			"policy.allowed_action_types", "policy.status", "policy.updated_at",
		}},
		{"version 0", func(p *engine.ActionPolicy) { p.Version = 0 }, []string{"policy.version"}},
		{"unsafe version", func(p *engine.ActionPolicy) { p.Version = condition.MaxInteger + 1 }, []string{"policy.version"}},
		{"unknown status", func(p *engine.ActionPolicy) { p.Status = "Active" }, []string{"policy.status"}},
		{"broken agent glob", func(p *engine.ActionPolicy) { p.AgentID = "team-[" }, []string{"policy.agent_id"}},
		{"negative cap", func(p *engine.ActionPolicy) { p.MaxCostMinor = amount(-1) }, []string{"policy.max_cost_minor"}},
		{"unsafe cap", func(p *engine.ActionPolicy) { p.MaxCostMinor = amount(condition.MaxInteger + 1) }, []string{"policy.max_cost_minor"}},
		{"currency", func(p *engine.ActionPolicy) { p.Currency = "€" }, []string{"policy.currency"}},
		{"action types", func(p *engine.ActionPolicy) {
			p.AllowedActionTypes, p.DeniedActionTypes = []string{"ok", ""}, []string{"a b", "ok.*", "x?"}
		}, []string{"policy.allowed_action_types[1]", "policy.denied_action_types[0]", "policy.denied_action_types[2]"}},
		{"patterns that do not compile are named by field and index", func(p *engine.ActionPolicy) {
			p.AllowedResourcePatterns, p.BlockedResourcePatterns = []string{"a/**", "b/["}, []string{"", "{a,b"}
		}, []string{"policy.allowed_resource_patterns[1]", "policy.blocked_resource_patterns[0]", "policy.blocked_resource_patterns[1]"}},
		{"too many entries", func(p *engine.ActionPolicy) { p.DeniedActionTypes = make([]string, 1001) }, []string{"policy.denied_action_types"}},
		{"too many alternatives", func(p *engine.ActionPolicy) {
			p.BlockedResourcePatterns = slices.Repeat([]string{"{a,b,c,d}/{e,f,g,h}/{i,j,k,l}/{m,n,o,p}/*"}, 100)
		}, []string{"policy.blocked_resource_patterns[55]"}},
		{"year 10000", func(p *engine.ActionPolicy) { p.UpdatedAt = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) }, []string{"policy.updated_at"}},
	})
}

func TestRule_Validate(t *testing.T) {
	valid := engine.Rule{Name: "Freeze", Condition: "{}", Action: `{"decision":"deny"}`, Priority: engine.DefaultPriority}
	validates(t, func() *engine.Rule { r := valid; return &r }, (*engine.Rule).Validate, []changed[engine.Rule]{
		{"valid", func(*engine.Rule) {}, nil},
		{"empty", func(r *engine.Rule) { *r = engine.Rule{} }, []string{"name", "condition", "action"}},
		{"long", func(r *engine.Rule) {
			r.Name, r.Description = strings.Repeat("n", 257), strings.Repeat("d", 4097)
			r.Condition, r.Action = strings.Repeat(" ", condition.MaxCondition+1), strings.Repeat(" ", condition.MaxText+1)
		}, []string{"name", "description", "condition", "action"}},
		{"description of several lines", func(r *engine.Rule) { r.Description = "a\nb" }, nil},
		{"control characters", func(r *engine.Rule) { r.Name, r.Description = "a\nb", "\x00" }, []string{"name", "description"}},
		{"priority", func(r *engine.Rule) { r.Priority = engine.MaxSetting + 1 }, []string{"priority"}},
	})
}

// TestIntent_Normalize checks that an intent has the same UUIDs whether they are written in lower
// or upper case.
func TestIntent_Normalize(t *testing.T) {
	in := corpus.AllowedIntent()
	in.IntentID, in.PolicyID = strings.ToUpper(in.IntentID), strings.ToUpper(in.PolicyID)
	in.Normalize()
	if diff := cmp.Diff(corpus.AllowedIntent(), in, cmpopts.IgnoreUnexported(engine.Intent{})); diff != "" {
		t.Errorf("Normalize (-want +got):\n%s", diff)
	}
}

func BenchmarkIntentValidate(b *testing.B) {
	in := corpus.AllowedIntent()
	b.ReportAllocs()
	for b.Loop() {
		must.Do(b, in.Validate())
	}
}

// TestIntent_ReadingsAreThoseOfTheResource checks that Readings uses the readings that Validate
// keeps only for the resource that Validate has read.
func TestIntent_ReadingsAreThoseOfTheResource(t *testing.T) {
	in := corpus.AllowedIntent()
	for _, text := range []string{"prod/a%2Fb", "HTTPS://Example.com:443/./x", "prod/web"} {
		in.Resource = text
		for _, when := range []string{"before", "after"} {
			got, err := in.Readings()
			want, wantErr := resource.Read(text)
			if err != nil || wantErr != nil || got.Raw() != want.Raw() || got.Projection() != want.Projection() || got.Len(resource.ForBlock) != want.Len(resource.ForBlock) {
				t.Errorf("Readings of %q %s Validate = %+v, %v, want %+v", text, when, got, err, want)
			}
			must.Do(t, in.Validate())
		}
	}
	in.Resource = "a\x00b"
	if _, err := in.Readings(); err == nil {
		t.Error("Readings of an unreadable resource after those of another = nil, want an error")
	}
	if err := in.Validate(); err == nil {
		t.Error("Validate of an unreadable resource = nil, want an error")
	}
	if _, err := in.Readings(); err == nil {
		t.Error("Readings of an unreadable resource = nil, want an error")
	}
}

func TestIntent_ValidatedReadingsCostNothing(t *testing.T) {
	in := corpus.AllowedIntent()
	in.Resource = "https://EXAMPLE.com/a%2fb/../c"
	must.Do(t, in.Validate())
	if n := testing.AllocsPerRun(100, func() {
		if _, err := in.Readings(); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("Readings after Validate allocates %v times, want 0", n)
	}
}

// TestActionPolicy_ValidateSaysWhatIsRight checks messages that were wrong once. A UUID in
// capitals is read. A version of 0 is not told that it is
// required.
func TestActionPolicy_ValidateSaysWhatIsRight(t *testing.T) {
	p := corpus.ReferencePolicy()
	p.PolicyID, p.Version = "refunds", 0
	const want = `invalid: policy.policy_id: want a UUID such as "123e4567-e89b-12d3-a456-426614174000"; ` +
		`policy.version: is missing or 0: want an integer from 1 to 9007199254740991`
	if err := p.Validate(); err == nil || err.Error() != want {
		t.Errorf("Validate() = %v, want %s", err, want)
	}
}

// TestDecision_Evaluation_IDsRefuseInvisibleCharacters checks that `agent_id`, `action_type` and
// every id refuse control, invisible and bidirectional characters with a 400. docs/resources.md
// has the set of these characters.
func TestDecision_Evaluation_IDsRefuseInvisibleCharacters(t *testing.T) {
	for _, c := range []string{"\x00", "\x7f", "\u0085", "\u00ad", "\u200b", "\u200d", "\u202e", "\u2066", "\ufeff", "\u3164", "\U000e0041"} {
		in := corpus.AllowedIntent()
		in.AgentID, in.ActionType = "bo"+c+"t", "de"+c+"ploy"
		if diff := cmp.Diff([]string{"intent.agent_id", "intent.action_type"}, fields(t, in.Validate())); diff != "" {
			t.Errorf("an intent with %U (-want +got):\n%s", []rune(c), diff)
		}
		p := corpus.ReferencePolicy()
		p.AgentID, p.OrganizationID, p.DeniedActionTypes = "bo"+c+"t", "ac"+c+"me", []string{"sql" + c}
		want := []string{"policy.organization_id", "policy.agent_id", "policy.denied_action_types[0]"}
		if diff := cmp.Diff(want, fields(t, p.Validate())); diff != "" {
			t.Errorf("a policy with %U (-want +got):\n%s", []rune(c), diff)
		}
	}
	in := corpus.AllowedIntent()
	in.AgentID = "می\u200cخواهم"
	if err := in.Validate(); err != nil {
		t.Errorf("an agent whose id has an ordinary joiner: %v", err)
	}
}
