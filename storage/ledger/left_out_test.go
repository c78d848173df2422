package ledger

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"writ.example/writ/engine"
	"writ.example/writ/internal/scrub"
	"writ.example/writ/storage"
)

// TestDecision_Audit_LeftOutNamesWhatIsLost projects random intents in both modes. A row says exactly
// which members of its intent it lacks: the digest of the kept intent is the intent's if and only if
// nothing is left out, and after the named members are put back. No named member is kept whole.
func TestDecision_Audit_LeftOutNamesWhatIsLost(t *testing.T) {
	n := 2_000
	if os.Getenv("WRIT_SOAK") == "1" {
		n = 100_000
	}
	scrubber, err := scrub.New()
	must(t, err)
	tagger, err := scrubber.Tagger(make([]byte, 32))
	must(t, err)
	l := open(t, newFake())
	rng := rand.New(rand.NewPCG(3, 4))
	pick := func(all ...string) string { return all[rng.IntN(len(all))] }
	token := "ghp_" + strings.Repeat("a1B2", 9)
	reservation, err := l.Reserve(t.Context(), nil, "acme", plenty)
	must(t, err)
	defer reservation.Release()
	lost := make(map[string]int)
	for range n {
		in := intent(1)
		in.AgentID = pick("ci", "CI", "team-a/Ⅷ", "bob@corp.example", token)
		in.ActionType = pick("deploy", "deploy", "deploy."+token)
		in.Resource = pick("prod/web", "prod/../web", "https://EXAMPLE.com/a", "https://example.com/a?b=c#d", "https://u:p@example.com/", "k8s/"+token)
		in.IssuedAt = pick("2026-11-21T10:00:00Z", "2026-11-21T10:00:00.1234567890123Z", "2026-11-21T10:00:00.4111111111111111Z")
		in.SessionID = pick("", "", "s-1", token)
		in.Metadata = nil
		if rng.IntN(4) > 0 {
			in.Metadata = map[string]string{}
			for range rng.IntN(4) {
				in.Metadata[pick("env", "team", "count", token, "x"+token, "password")] = pick("prod", "", "12", "bob@corp.example", token)
			}
		}
		e := entry(in, engine.Allow)
		e.Reservation = reservation
		cfg := l.cfg
		cfg.Scrub, cfg.Audit = tagger, Mode(pick(string(Minimal), string(Full)))
		r, err := project(&cfg, &e)
		must(t, err)
		kept := r.Intent()
		if whole := IntentDigest(kept) == r.IntentDigest; whole != (r.LeftOut == nil) {
			t.Fatalf("mode %s: %+v: left out are %q, and the digest fits: %v", cfg.Audit, in, r.LeftOut, whole)
		}
		if want := lostOf(in, r, tagger); !slices.Equal(r.LeftOut, want) {
			t.Fatalf("mode %s: %+v: left out are %q, want %q", cfg.Audit, in, r.LeftOut, want)
		}
		for _, name := range r.LeftOut {
			restore(kept, in, name)
			lost[strings.SplitN(name, ".", 2)[0]]++
		}
		if got := IntentDigest(kept); got != r.IntentDigest {
			t.Fatalf("mode %s: %+v with %q put back: %+v", cfg.Audit, in, r.LeftOut, kept)
		}
	}
	for _, name := range []string{"resource", "agent_id", "action_type", "issued_at", "session_id", "metadata"} {
		if lost[name] == 0 {
			t.Errorf("%s was never left out", name)
		}
	}
}

// lostOf compares JSON documents of the sent intent and of the kept one, member by member.
func lostOf(in *engine.Intent, r *storage.Record, scrub Scrubber) (names []string) {
	document := func(in *engine.Intent) (m map[string]any) {
		b, err := json.Marshal(in)
		if err == nil {
			err = json.Unmarshal(b, &m)
		}
		if err != nil {
			panic(err)
		}
		m["session_id"] = in.SessionID
		return m
	}
	sent, kept := document(in), document(r.Intent())
	for name, value := range sent {
		if name != "metadata" && !cmp.Equal(value, kept[name]) {
			names = append(names, name)
		}
	}
	values, _ := sent["metadata"].(map[string]any)
	for key, value := range values {
		name := key
		if !slices.Contains(r.MetadataKeys, key) {
			names = append(names, "metadata")
			name = scrub.Text(key)
		}
		if found, ok := r.Metadata[name]; !ok || found != value {
			names = append(names, "metadata."+name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// restore puts a member of in back into kept.
func restore(kept, in *engine.Intent, name string) {
	switch name {
	case "resource":
		kept.Resource = in.Resource
	case "agent_id":
		kept.AgentID = in.AgentID
	case "action_type":
		kept.ActionType = in.ActionType
	case "issued_at":
		kept.IssuedAt = in.IssuedAt
	case "session_id":
		kept.SessionID = in.SessionID
	case "metadata":
		kept.Metadata = in.Metadata
	default:
		key := strings.TrimPrefix(name, "metadata.")
		value, ok := in.Metadata[key]
		if !ok {
			return // a scrubbed key: "metadata" is left out too
		}
		metadata := map[string]string{key: value}
		for k, v := range kept.Metadata {
			if k != key {
				metadata[k] = v
			}
		}
		kept.Metadata = metadata
	}
}

// TestDecision_Audit_AnOlderRowIsItsAuditDigest checks a row whose audit digest does not cover findings
// and left_out. It is accepted with the left_out that everybody can compute, and with no other.
func TestDecision_Audit_AnOlderRowIsItsAuditDigest(t *testing.T) {
	_, l := openFake(t)
	older := *mustDecide(t, l, "acme", intent(1)).Record
	older.Findings, older.LeftOut = nil, nil
	older.AuditDigest = AuditDigest(&older)
	if !isOfAuditDigest(&older) {
		t.Fatal("an older row as it was is refused")
	}
	want := []string{"metadata.env", "metadata.ticket"}
	if got := LeftOutOf(&older); !slices.Equal(got, want) {
		t.Errorf("LeftOutOf = %q, want %q", got, want)
	}
	for left, accepted := range map[string]bool{fmt.Sprint(want): true, "[resource]": false, "[]": true} {
		row := older
		if fields := strings.Fields(strings.Trim(left, "[]")); len(fields) > 0 {
			row.LeftOut = fields
		}
		if got := isOfAuditDigest(&row); got != accepted {
			t.Errorf("an older row with left_out %q: accepted = %v", row.LeftOut, got)
		}
	}
	row := *mustDecide(t, l, "acme", intent(2)).Record
	for what, change := range map[string]func(){
		"without left_out":      func() { row.LeftOut = nil },
		"with another left_out": func() { row.LeftOut = []string{"resource"} },
		"without findings":      func() { row.Findings = nil },
		"with another cause": func() {
			row.Findings = []storage.Finding{{Code: "policy.test", Outcome: engine.Allow, Decides: true, Cause: "x"}}
		},
	} {
		whole := row
		if change(); isOfAuditDigest(&row) {
			t.Errorf("a row %s is accepted", what)
		}
		row = whole
	}
}

// TestDecision_Audit_FindingsHaveNoValue checks that the findings of a row have no value of the
// metadata, and that a key is scrubbed.
func TestDecision_Audit_FindingsHaveNoValue(t *testing.T) {
	_, l := openFake(t)
	e := entry(intent(1), engine.Deny)
	e.Result.Findings = []engine.Finding{
		{Code: engine.CodeRuleDeny, Outcome: engine.Deny, Reason: "rule.deny: no", RuleID: "r", RuleRevision: 3, Cause: "missing", Field: "metadata.hunter"},
		{Code: engine.CodeCoreFinding, Outcome: engine.Allow, Reason: "my.code: no"},
	}
	out, err := decide(t.Context(), l, "acme", e)
	must(t, err)
	want := []storage.Finding{
		{Code: "rule.deny", Outcome: engine.Deny, Decides: true, RuleID: "r", RuleRevision: 3, Cause: "missing", Field: "metadata.[scrubbed]"},
		{Code: "my.code", Outcome: engine.Allow},
	}
	if diff := cmp.Diff(want, out.Record.Findings); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
	e = entry(intent(2), engine.Allow)
	e.Result.Findings[0].Code = engine.CodePolicyAllowed
	if out, err = decide(t.Context(), l, "acme", e); err != nil || out.Record.Findings != nil {
		t.Errorf("an allow without a rule has the findings %+v, %v", out.Record.Findings, err)
	}
}

// TestDecision_Audit_FullKeepsOrdinaryResources checks that nearly every row of an ordinary resource is
// complete in the mode full: at least 375 of 410.
func TestDecision_Audit_FullKeepsOrdinaryResources(t *testing.T) {
	scrubber, err := scrub.New()
	must(t, err)
	tagger, err := scrubber.Tagger(make([]byte, 32))
	must(t, err)
	l := open(t, newFake())
	reservation, err := l.Reserve(t.Context(), nil, "acme", plenty)
	must(t, err)
	defer reservation.Release()
	cfg := l.cfg
	cfg.Scrub, cfg.Audit = tagger, Full
	b, err := os.ReadFile("../../internal/oracles/testdata/ordinary.jsonl")
	must(t, err)
	n, complete := 0, 0
	for line := range strings.Lines(string(b)) {
		var ordinary struct {
			Resource string `json:"resource"`
		}
		must(t, json.Unmarshal([]byte(line), &ordinary))
		in := intent(1)
		in.Resource = ordinary.Resource
		e := entry(in, engine.Allow)
		e.Reservation = reservation
		r, err := project(&cfg, &e)
		if err != nil {
			continue // the resource is refused
		}
		n++
		if r.LeftOut == nil {
			complete++
		}
	}
	if complete*410 < n*375 {
		t.Errorf("%d of %d rows are complete, want 375 of 410", complete, n)
	}
	t.Logf("%d of %d rows are complete", complete, n)
}
