package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"writ/authoring/document"
	"writ/engine"
	"writ/storage"
)

// seed writes suites of what an organization was decided: one for each policy, with the
// last decisions that differ in action, resource or codes.
func (c *testCmd) seed(ctx context.Context, s streams) error {
	o, err := c.organization(s)
	if err != nil {
		return err
	}
	h := &seeding{remote: remote{client: o.client}, policies: map[string]*seeded{}, seen: map[string]bool{}}
	if err := h.documents(ctx, o); err != nil {
		return err
	}
	if err := h.read(ctx, c.N); err != nil {
		return err
	}
	if len(h.seen) == 0 {
		fmt.Fprintln(s.err, "writ: the history has no decision by a current policy")
		return errReportedInvalid
	}
	return h.write(s)
}

type seeding struct {
	remote
	rules    []jsontext.Value
	policies map[string]*seeded // by their ids
	order    []*seeded
	seen     map[string]bool
	left     int // decisions that no case can repeat
}

// seeded is a policy, and decisions by it.
type seeded struct {
	doc     *engine.ActionPolicy
	records []*storage.Record
}

// documents reads the policies and the rules as they are now.
func (h *seeding) documents(ctx context.Context, o *organization) error {
	server, err := o.fetch(ctx)
	if err != nil {
		return err
	}
	for _, p := range server.Newest() {
		h.policies[p.PolicyID] = &seeded{doc: p}
	}
	for _, r := range server.Rules() {
		rule, err := edited(r, func(members map[string]jsontext.Value) { // condition and action become objects
			for name, text := range map[string]string{"condition": r.Condition, "action": r.Action} {
				if v := jsontext.Value(text); v.IsValid() {
					members[name] = v
				}
			}
		})
		if err != nil {
			return err
		}
		h.rules = append(h.rules, rule)
	}
	return nil
}

// edited is the JSON of v, an object, after f has changed its members.
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

var errEnough = errors.New("there are enough")

// read takes the last n decisions that differ.
func (h *seeding) read(ctx context.Context, n int) error {
	err := h.each(ctx, "/v1/authorizations", func(item jsontext.Value) error {
		r := new(storage.Record)
		if err := json.Unmarshal(item, r); err != nil {
			return fmt.Errorf("reading the history: %w", err)
		}
		if h.take(r); len(h.seen) == n {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// take adds a decision that is new, unless no case can repeat it.
func (h *seeding) take(r *storage.Record) {
	p := h.policies[r.PolicyID]
	if p == nil || p.doc.Version != r.PolicyVersion || !repeatable(r) {
		h.left++
		return
	}
	key := strings.Join(append([]string{r.PolicyID, r.ActionType, r.Resource}, codeTexts(r)...), "\n")
	if h.seen[key] {
		return
	}
	h.seen[key] = true
	if len(p.records) == 0 {
		h.order = append(h.order, p)
	}
	p.records = append(p.records, r)
}

// unrepeatable are the codes of findings that are of more than an intent, a policy and its
// rules.
var unrepeatable = []engine.Code{
	engine.CodeBatchRefused, engine.CodeCoreFinding, engine.CodePolicyMissing, engine.CodePolicyUnreadable,
	engine.CodeResourceUnreadable,
}

// repeatable reports whether an intent of the history can be decided again: the history
// hides what looks like a secret, names the codes of an external core as it gives them, and
// has no session's or approval's documents.
func repeatable(r *storage.Record) bool {
	if r.SessionID != "" || r.ApprovalID != "" {
		return false
	}
	for _, code := range codesOf(r.Reasons) {
		if slices.Contains(unrepeatable, code) || !slices.Contains(engine.Codes(), code) {
			return false
		}
	}
	return r.Intent().Validate() == nil && !replaced.MatchString(r.Resource+" "+r.ActionType+" "+r.AgentID)
}

// replaced is what the history has in the place of a secret: see package scrub.
var replaced = regexp.MustCompile(`\[[a-z0-9-]+:[A-Za-z0-9-]+\]`)

// codeTexts are the codes of a decision, each once, sorted.
func codeTexts(r *storage.Record) (texts []string) {
	for _, code := range codesOf(r.Reasons) {
		texts = append(texts, string(code))
	}
	slices.Sort(texts)
	return slices.Compact(texts)
}

// write writes the suites as YAML, whose values are JSON.
func (h *seeding) write(s streams) error {
	var b bytes.Buffer
	for i, p := range h.order {
		if i > 0 {
			b.WriteString("---\n")
		}
		if err := h.suite(&b, p); err != nil {
			return err
		}
	}
	if h.left > 0 {
		fmt.Fprintf(s.err,
			"writ: %d decisions are left out: other versions of their policies made them, or a case cannot repeat "+
				"them\n", h.left)
	}
	text, err := document.Format("history_test.yaml", b.Bytes())
	if err != nil {
		return fmt.Errorf("writing the suites: %w", err)
	}
	_, err = s.out.Write(text)
	return err
}

func (h *seeding) suite(b *bytes.Buffer, p *seeded) error {
	policy, err := json.Marshal(p.doc)
	if err != nil {
		return err
	}
	fmt.Fprintf(b, "suite: history of %s\npolicy: %s\n", p.doc.PolicyID, policy)
	if len(h.rules) > 0 {
		b.WriteString("rules:\n")
	}
	for _, r := range h.rules {
		fmt.Fprintf(b, "  - %s\n", r)
	}
	b.WriteString("intents:\n")
	for i, r := range p.records {
		if len(r.MetadataKeys) > 0 && len(r.Metadata) == 0 {
			fmt.Fprintf(b, "  # its metadata, without the values, which the history does not keep: %s\n",
				strings.Join(r.MetadataKeys, ", "))
		}
		text, err := edited(r.Intent(), func(members map[string]jsontext.Value) { // the ids are made up
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
		if err := seedTest(b, i+1, r); err != nil {
			return err
		}
	}
	return nil
}

// seedTest writes the test of a decision, in the state that its codes tell.
func seedTest(b *bytes.Buffer, n int, r *storage.Record) error {
	codes := codeTexts(r)
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
