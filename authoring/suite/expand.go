package suite

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/agnivade/levenshtein"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
)

// madeUpID is the intent_id of an intent without one.
const madeUpID = "5eed0000-0000-4000-8000-000000000000"

// Case is one intent and the decision that it must get.
type Case struct {
	Suite *Suite
	// Test is the name of the test. Name distinguishes the cases of a test. It lists the values
	// that the case sets, such as cost.amount_minor=50001.
	Test, Name string
	// Fixture is the name of the intent that the case starts from.
	Fixture string
	// Input is what the engine evaluates. Its Intent is nil if the intent is not valid.
	Input engine.Input

	want expected
	// refusal is the error of the intent if the intent must be refused, and nil otherwise.
	refusal *engine.InvalidError
	// field is the path of the test, or of the row, in the suite.
	field string
}

// expected is the result that a case must have. codes are sorted. Nil codes admit any codes.
type expected struct {
	decision engine.Decision
	// refused is true if the intent must not be valid. Then its error must contain message, and
	// decision is [engine.Deny].
	refused bool
	message string
	codes   []engine.Code
	rule    string
	err     *bool
	// decisionAt and codesAt are the paths of the fields that give decision and codes.
	decisionAt, codesAt string
}

func (r *reader) expand(s *Suite, f *File) {
	e := &expander{reader: r, suite: s, file: f, resolved: map[string]members{}}
	if f.Now != "" {
		at, err := condition.ParseTime(f.Now)
		if err != nil {
			r.refuse("now", "%v", err)
			return
		}
		s.now = engine.ClockTime(at)
	}
	e.fixtures()
	if len(f.Tests) == 0 {
		r.refuse("tests", "is required: a suite without tests proves nothing")
	}
	seen := map[string]bool{}
	for i := range f.Tests {
		t := &f.Tests[i]
		field := fmt.Sprintf("tests[%d]", i)
		switch {
		case t.Name == "":
			r.refuse(field+".name", "is required")
		case seen[t.Name]:
			r.refuse(field+".name", "another test of the suite is called %q, too", t.Name)
		}
		seen[t.Name] = true
		e.test(t, field)
	}
	number(s.Cases)
}

// number makes names unique: a further case with the same test and name gets a number.
func number(cases []*Case) {
	type name struct{ test, name string }
	seen := map[name]int{}
	for _, c := range cases {
		n := name{c.Test, c.Name}
		if seen[n]++; seen[n] > 1 {
			c.Name += fmt.Sprintf(" #%d", seen[n])
		}
	}
}

type expander struct {
	*reader
	suite    *Suite
	file     *File
	resolved map[string]members // the fixtures, including the members that they inherit by extends
}

// fixtures resolves the intents of the file. It reports the mistakes of an intent that nothing
// uses. An intent that another one extends, or that a test uses, may be incomplete.
func (e *expander) fixtures() {
	used := map[string]bool{}
	for _, members := range e.file.Intents {
		if base, ok := textOf(members["extends"]); ok {
			used[base] = true
		}
	}
	for i := range e.file.Tests {
		used[e.file.Tests[i].Intent] = true
	}
	e.suite.fixtures = map[string]*engine.Intent{}
	for _, name := range slices.Sorted(maps.Keys(e.file.Intents)) {
		m := e.resolve(name, nil)
		if m == nil {
			continue
		}
		whole := e.completed(m)
		intent, err := decodeIntent(whole)
		if err != nil && !used[name] {
			e.locate(err, whole, "intents."+name)
		}
		if intent != nil {
			e.suite.fixtures[name] = intent
		}
	}
}

// resolve returns the members of a fixture, or nil after a mistake. within has the names of the
// fixtures that are being resolved, so that a cycle is found.
func (e *expander) resolve(name string, within []string) members {
	if m, ok := e.resolved[name]; ok {
		return m
	}
	field := "intents." + name
	m := members{}
	own := e.file.Intents[name]
	if v, ok := own["extends"]; ok {
		base, _ := textOf(v)
		switch {
		case e.file.Intents[base] == nil:
			e.refuse(field+".extends", "there is no intent %s%s", v,
				meant(base, slices.Sorted(maps.Keys(e.file.Intents))))
			return nil
		case base == name || slices.Contains(within, base):
			e.refuse(field+".extends", "extends itself: %s", strings.Join(append(within, name, base), ", "))
			return nil
		}
		from := e.resolve(base, append(within, name))
		if from == nil {
			return nil
		}
		m = maps.Clone(from)
	}
	for _, member := range slices.Sorted(maps.Keys(own)) {
		if member != "extends" {
			m.merge(member, value{own[member], field + "." + member})
		}
	}
	e.resolved[name] = m
	return m
}

// completed returns m. It adds an intent_id, a policy_id and an issued_at where m lacks them.
func (e *expander) completed(m members) members {
	whole := maps.Clone(m)
	for path, text := range map[string]string{
		"intent_id": madeUpID, "policy_id": e.suite.subject.doc.PolicyID, "issued_at": e.file.Now,
	} {
		if _, ok := whole[path]; !ok && text != "" {
			from := ""
			if path == "issued_at" {
				from = "now"
			}
			whole[path] = value{encode(text), from}
		}
	}
	return whole
}

// decidedAt returns the time at which a case decides the intent: own if the case has a time, else
// the suite's, else the intent's.
func (s *Suite) decidedAt(own time.Time, in *engine.Intent) time.Time {
	for _, at := range []time.Time{own, s.now} {
		if !at.IsZero() {
			return at
		}
	}
	return in.Issued()
}

func decodeIntent(m members) (*engine.Intent, error) {
	in, err := engine.DecodeIntent(m.json(), "intent")
	if err != nil {
		return nil, err
	}
	return in, in.Validate()
}

// locate adds the mistakes of an intent. The place of a mistake is the suite's field that set the
// member. If no field set the member, the place is field.
func (e *expander) locate(err error, m members, field string) {
	var invalid *engine.InvalidError
	if !errors.As(err, &invalid) {
		e.add(err)
		return
	}
	for _, f := range invalid.Fields {
		at, ok := m.origin(strings.TrimPrefix(f.Field, "intent."))
		if !ok || at == "" {
			at = field
		}
		message := f.Message
		if f.Field == "intent.issued_at" && at == field {
			message += "; or give the suite a time: now"
		}
		e.refuse(at, "%s: %s", f.Field, message)
	}
}

// meant returns the end of an error message about an unknown name: the known name that is most
// similar, or all known names.
func meant(name string, names []string) string {
	best, edits := "", 1+len(name)/3
	for _, n := range names {
		if d := levenshtein.ComputeDistance(name, n); d <= edits {
			best, edits = n, d-1
		}
	}
	if i := slices.IndexFunc(names, func(n string) bool {
		return name != "" && strings.HasPrefix(n, name)
	}); best == "" && i >= 0 {
		best = names[i]
	}
	switch {
	case best != "":
		return fmt.Sprintf(": did you mean %s?", best)
	case len(names) == 0:
		return ""
	}
	return ": want one of " + strings.Join(names, ", ")
}
