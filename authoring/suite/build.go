package suite

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
)

// caseBuilder builds one case from the values of a test and of a row.
type caseBuilder struct {
	*expander
	test, row        string
	intent, intentAt string
	order            []string
	members          map[string]value
	labels           []string
	input            engine.Input
	counted          int64
	session          value // its json is nil if the case has no session
	want             expected
}

// cells returns the values of a test by column. A row's cells replace the test's values.
func (t *Test) cells(field string) (all []assignment) {
	add := func(column string, v any, said bool) {
		if !said {
			return
		}
		all = append(all, assignment{column, value{encode(v), field + "." + column}})
	}
	add("now", t.Now, t.Now != "")
	add("session", t.Session, t.Session != nil)
	add("agent", t.Agent, t.Agent != "")
	add("organization_stopped", true, t.Stopped)
	add("usage_exceeded", true, t.UsageExceeded)
	add("require_registered_agents", true, t.RequireRegistered)
	add("counted", t.Counted, t.Counted != 0)
	add("want", t.Want, t.Want != "")
	add("message", t.Message, t.Message != "")
	add("codes", t.Codes, t.Codes != nil)
	add("rule", t.Rule, t.Rule != "")
	add("error", t.Error, t.Error != nil)
	return all
}

func (s *caseBuilder) set(a assignment) {
	ok := true
	text := ""
	if isAbsent(a.json) && slices.Contains(columns, a.column) {
		return // the row keeps the test's value
	}
	switch a.column {
	case "want", "message", "agent", "rule", "intent", "now":
		if text, ok = textOf(a.json); !ok {
			s.refuse(a.from, "%s: want a string", a.column)
			return
		}
	}
	switch a.column {
	case "want":
		s.decision(text, a.from)
	case "message":
		s.want.message = text
	case "rule":
		s.rule(text, a.from)
	case "intent":
		s.intent, s.intentAt = text, a.from
	case "agent":
		s.agent(text, a.from)
	case "now":
		at, err := condition.ParseTime(text)
		if err != nil {
			s.refuse(a.from, "now: %v", err)
		}
		s.input.DecidedAt = engine.ClockTime(at)
	case "codes":
		var codes []string
		if ok = json.Unmarshal(a.json, &codes) == nil; ok {
			s.codes(codes, a.from)
		}
	case "error":
		s.want.err = new(bool)
		ok = json.Unmarshal(a.json, s.want.err) == nil
	case "organization_stopped":
		ok = json.Unmarshal(a.json, &s.input.Stopped) == nil
	case "usage_exceeded":
		ok = json.Unmarshal(a.json, &s.input.Usage.Exceeded) == nil
	case "require_registered_agents":
		ok = json.Unmarshal(a.json, &s.input.RequireRegistered) == nil
	case "counted":
		ok = json.Unmarshal(a.json, &s.counted) == nil && s.counted >= 0
	case "session":
		s.session = a.value
	default:
		s.order = append(s.order, a.column)
		s.members[a.column] = a.value
	}
	if !ok {
		s.refuse(a.from, "%s: want %s", a.column, wantOf(a.column))
	}
	if !slices.Contains([]string{"want", "message", "codes", "rule", "error", "intent"}, a.column) {
		s.labels = append(s.labels, a.column+"="+shown(a.json))
	}
}

// wantOf describes the values that a column may have.
func wantOf(column string) string {
	switch column {
	case "codes":
		return "an array of codes"
	case "counted":
		return "an integer from 0"
	}
	return "true or false"
}

func (s *caseBuilder) counts(in *engine.Intent) []condition.Count {
	return engine.Counts(s.suite.subject.set.Counters(), in, func(*condition.Counter) int64 { return s.counted })
}

// shown returns v as it appears in the name of a case.
func shown(v jsontext.Value) string {
	if isAbsent(v) {
		return "null"
	}
	if text, ok := textOf(v); ok && text != "" && !strings.ContainsAny(text, " ,\"\n") {
		return text
	}
	return string(v)
}

// refused is the value of a test's want for an intent that must not be valid.
const refused = "refused"

// wants has the allowed values of a test's want.
var wants = []string{engine.Allow.String(), engine.ApprovalRequired.String(), engine.Deny.String(), refused}

func (s *caseBuilder) decision(text, at string) {
	s.want.decisionAt, s.want.refused = at, text == refused
	s.want.decision = engine.Deny
	if s.want.refused {
		return
	}
	d, err := engine.ParseDecision(text)
	if err != nil {
		s.refuse(at, "there is no decision %q%s", text, meant(text, wants))
		return
	}
	s.want.decision = d
}

// checkTogether refuses members of a test that exclude each other.
func (s *caseBuilder) checkTogether(field string) {
	w := &s.want
	switch {
	case w.refused && (w.codes != nil || w.rule != "" || w.err != nil):
		s.refuse(field, "an intent that is refused is not decided: leave out codes, rule and error")
	case !w.refused && w.message != "" && w.decisionAt != "":
		s.refuse(field, "message is for a refused intent, and the wanted decision is %s", w.decision)
	}
}

func (s *caseBuilder) codes(codes []string, at string) {
	s.want.codes, s.want.codesAt = []engine.Code{}, at
	for i, c := range codes {
		if !slices.Contains(engine.Codes(), engine.Code(c)) {
			var known []string
			for _, k := range engine.Codes() {
				known = append(known, string(k))
			}
			s.refuse(fmt.Sprintf("%s[%d]", at, i), "there is no code %q%s", c, meant(c, known))
		}
		s.want.codes = append(s.want.codes, engine.Code(c))
	}
	s.want.codes = sorted(s.want.codes)
}

func (s *caseBuilder) agent(text, at string) {
	switch a := engine.AgentStatus(text); a {
	case engine.AgentActive, engine.AgentDisabled:
		s.input.Agent = a
	default:
		s.input.Agent = engine.AgentUnregistered
		if unregistered := engine.AgentUnregistered.String(); text != unregistered {
			s.refuse(at, "there is no status %q%s", text, meant(text, []string{"active", "disabled", unregistered}))
		}
	}
}

func (s *caseBuilder) rule(name, at string) {
	s.want.rule = name
	if len(s.suite.subject.ruleCalled(name)) == 0 {
		var names []string
		for _, r := range s.suite.subject.rules {
			names = append(names, r.Name)
		}
		s.refuse(at, "there is no rule %q%s", name, meant(name, names))
	}
}

// build returns the intent of the case. If the test wants a refusal, it returns the intent's error
// instead. After any other mistake both results are nil.
func (s *caseBuilder) build() (*engine.Intent, *engine.InvalidError) {
	from, ok := s.resolved[s.intent]
	if !ok {
		switch {
		case s.file.Intents[s.intent] != nil: // the mistake of the intent is reported already
		case s.intent == "":
			s.refuse(s.test, "intent is required: the name of one of the intents")
		default:
			s.refuse(s.intentAt, "there is no intent %q%s", s.intent,
				meant(s.intent, slices.Sorted(maps.Keys(s.file.Intents))))
		}
		return nil, nil
	}
	m := maps.Clone(from)
	for _, path := range s.order {
		m.set(path, s.members[path])
	}
	m = s.completed(m)
	in, err := decodeIntent(m)
	var invalid *engine.InvalidError
	switch {
	case errors.As(err, &invalid) && s.want.refused:
		return nil, invalid
	case err != nil:
		s.locate(err, m, s.row)
		return nil, nil
	}
	if policy := s.suite.subject.doc.PolicyID; in.PolicyID != policy {
		s.refuse(m["policy_id"].from, "intent.policy_id: the policy is %s: leave it out", policy)
		return nil, nil
	}
	return in, nil
}

func textOf(v jsontext.Value) (string, bool) {
	var text string
	ok := v.Kind() == '"' && json.Unmarshal(v, &text) == nil
	return text, ok
}

// sorted returns the codes sorted, without duplicates.
func sorted(codes []engine.Code) []engine.Code {
	codes = slices.Clone(codes)
	slices.Sort(codes)
	return slices.Compact(codes)
}
