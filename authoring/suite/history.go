package suite

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"writ.example/writ/authoring/document"
	"writ.example/writ/engine"
	"writ.example/writ/storage"
)

// History makes suites from the decisions of an organization, one suite for each policy. A suite
// has one case for each combination of action, resource and codes.
type History struct {
	// Taken counts the decisions in the suites. Left counts the decisions that were left out:
	// another version of the policy made the decision, or no case can repeat it.
	Taken, Left int

	rules    []jsontext.Value
	policies map[string]*decided // the key is policy_id
	order    []*decided
	seen     map[string]bool
}

// decided is a policy with its decisions.
type decided struct {
	policy  *engine.ActionPolicy
	records []*storage.Record
}

// NewHistory returns a history without decisions. policies and rules are those that the
// organization has now.
func NewHistory(policies []*engine.ActionPolicy, rules []engine.Rule) (*History, error) {
	h := &History{policies: make(map[string]*decided), seen: make(map[string]bool)}
	for _, p := range policies {
		h.policies[p.PolicyID] = &decided{policy: p}
	}
	for _, r := range rules {
		rule, err := edited(r, func(members map[string]jsontext.Value) { // writes condition and action as objects
			for name, text := range map[string]string{"condition": r.Condition, "action": r.Action} {
				if v := jsontext.Value(text); v.IsValid() {
					members[name] = v
				}
			}
		})
		if err != nil {
			return nil, err
		}
		h.rules = append(h.rules, rule)
	}
	return h, nil
}

// edited returns the JSON of the object v after f has changed the object's members.
func edited(v any, f func(members map[string]jsontext.Value)) (jsontext.Value, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var members map[string]jsontext.Value
	if err := json.Unmarshal(text, &members); err != nil {
		return nil, err
	}
	f(members)
	return json.Marshal(members, json.Deterministic(true))
}

// Take adds a decision to its suite. It skips a decision with the same action, resource and codes
// as an earlier one. If no case can repeat the decision, Take only counts it in Left.
func (h *History) Take(r *storage.Record) {
	p, codes := h.policies[r.PolicyID], codesIn(r.Reasons)
	if p == nil || p.policy.Version != r.PolicyVersion || !repeatable(r, codes) {
		h.Left++
		return
	}
	key := strings.Join(append([]string{r.PolicyID, r.ActionType, r.Resource}, codes...), "\n")
	if h.seen[key] {
		return
	}
	h.seen[key] = true
	h.Taken++
	if len(p.records) == 0 {
		h.order = append(h.order, p)
	}
	p.records = append(p.records, r)
}

// unrepeatable has the codes of findings that depend on more than the intent, the policy and the
// rules.
var unrepeatable = []engine.Code{
	engine.CodeBatchRefused, engine.CodeCoreFinding, engine.CodePolicyMissing, engine.CodePolicyUnreadable,
	engine.CodeResourceUnreadable,
}

// repeatable reports whether a case can decide an intent of the history again. This is impossible
// if the history hides a part that looks like a secret, or if a code comes from an external core.
// It is also impossible if a session or an approval was involved, because the history does not have
// their documents.
func repeatable(r *storage.Record, codes []string) bool {
	for _, code := range codes {
		if c := engine.Code(code); slices.Contains(unrepeatable, c) || !slices.Contains(engine.Codes(), c) {
			return false
		}
	}
	return r.SessionID == "" && r.ApprovalID == "" && r.Intent().Validate() == nil &&
		!replaced.MatchString(r.Resource+" "+r.ActionType+" "+r.AgentID)
}

// replaced matches the text with which the history replaces a secret: see package scrub.
var replaced = regexp.MustCompile(`\[[a-z0-9-]+:[A-Za-z0-9-]+\]`)

// codesIn returns the codes at the start of the reasons, sorted and without duplicates.
func codesIn(reasons []string) (codes []string) {
	for _, reason := range reasons {
		code, _, _ := strings.Cut(reason, ":")
		codes = append(codes, code)
	}
	slices.Sort(codes)
	return slices.Compact(codes)
}

// Format returns the suites as YAML, with policies, rules and intents as JSON.
func (h *History) Format() ([]byte, error) {
	var b bytes.Buffer
	for i, p := range h.order {
		if i > 0 {
			b.WriteString("---\n")
		}
		if err := h.suite(&b, p); err != nil {
			return nil, err
		}
	}
	text, err := document.Format("history_test.yaml", escaped(b.String()))
	if err != nil {
		return nil, fmt.Errorf("writing the suites: %w", err)
	}
	return text, nil
}

// escaped escapes the characters that JSON may leave in a string and that YAML reads as line breaks
// or refuses. All of text but our own words and line ends is JSON.
func escaped(text string) []byte {
	var b bytes.Buffer
	for _, r := range text {
		if r != '\n' && (unicode.IsControl(r) || strings.ContainsRune("\u2028\u2029\ufeff", r)) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.Bytes()
}

func (h *History) suite(b *bytes.Buffer, p *decided) error {
	policy, err := json.Marshal(p.policy)
	if err != nil {
		return err
	}
	fmt.Fprintf(b, "suite: history of %s\npolicy: %s\n", p.policy.PolicyID, policy)
	if len(h.rules) > 0 {
		b.WriteString("rules:\n")
	}
	for _, r := range h.rules {
		fmt.Fprintf(b, "  - %s\n", r)
	}
	b.WriteString("intents:\n")
	for i, r := range p.records {
		if len(r.MetadataKeys) > 0 && len(r.Metadata) == 0 {
			fmt.Fprintf(b, "  # its metadata: the history does not keep the values: %q\n", r.MetadataKeys)
		}
		text, err := edited(r.Intent(), func(members map[string]jsontext.Value) { // the suite generates a new id
			delete(members, "intent_id")
			delete(members, "policy_id")
		})
		if err != nil {
			return err
		}
		fmt.Fprintf(b, "  decision-%d: %s\n", i+1, text)
	}
	b.WriteString("tests:\n")
	for i, r := range p.records {
		if err := testOf(b, i+1, r); err != nil {
			return err
		}
	}
	return nil
}

// testOf writes the test of a decision. From the decision's codes it infers the state of the organization,
// of the agent and of the plan.
func testOf(b *bytes.Buffer, n int, r *storage.Record) error {
	codes := codesIn(r.Reasons)
	test := map[string]any{
		"name":   strings.Join([]string{r.ActionType, r.Resource, strings.Join(codes, " ")}, " "),
		"intent": fmt.Sprintf("decision-%d", n),
		"want":   r.Decision, "codes": codes,
	}
	if slices.Contains(codes, string(engine.CodeAgentDisabled)) {
		test["agent"] = engine.AgentDisabled
	}
	if slices.Contains(codes, string(engine.CodeAgentUnregistered)) {
		test["require_registered_agents"] = true
	}
	if slices.Contains(codes, string(engine.CodeOrganizationStopped)) {
		test["organization_stopped"] = true
	}
	if slices.Contains(codes, string(engine.CodeUsageLimit)) {
		test["usage_exceeded"] = true
	}
	text, err := json.Marshal(test, json.Deterministic(true))
	if err != nil {
		return err
	}
	fmt.Fprintf(b, "  - %s\n", text)
	return nil
}
