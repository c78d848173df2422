package rego

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
	"github.com/open-policy-agent/opa/v1/types"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
)

// A module may say why its rule decides. The texts of its set `reason` are messages: they stand beside
// the text of the action among the reasons of the decision.
//
// Reasons are stored, signed and answered, and they echo no metadata. So an element whose value could
// hold a value of the metadata is no message: see taint.go. An element that could hold another text of
// the intent is evaluated with that text as the row of the decision keeps it.

// reasonEntry is the name of the set of messages.
const reasonEntry = "reason"

// The bounds of the messages of one rule. The length is in characters.
const (
	maxMessages = 8
	maxMessage  = 256
)

// messageRule is a rule that adds an element to a set of messages.
type messageRule struct {
	rule *ast.Rule // compiled
	// holds has the members of the intent that it could hold.
	holds held
}

// kept reports whether its texts are messages.
func (m messageRule) kept() bool { return m.holds&heldMetadata == 0 }

// messagesOf returns the rules of the messages of c's module, also those that are left out. It must run
// before guards are added.
func messagesOf(c *ast.Compiler, m *ast.Module, l *Libraries) []messageRule {
	if !speaks(m) {
		return nil
	}
	var all []messageRule
	t := newTaint(c, l.isGuard)
	for _, r := range c.GetRulesExact(m.Package.Path.Append(ast.StringTerm(reasonEntry))) {
		all = append(all, messageRule{rule: r, holds: t.value(r)})
	}
	return all
}

// speaks reports whether m has a set of messages.
func speaks(m *ast.Module) bool {
	rules := rulesNamed(m, reasonEntry)
	return len(rules) > 0 && !slices.ContainsFunc(rules, func(r *ast.Rule) bool { return !isSet(r) })
}

// isGuard reports whether e only charges for values: see guard.go.
func (l *Libraries) isGuard(e *ast.Expr) bool {
	return l.meters != nil && (&prepared{functions: l.meters.functions}).isGuard(e)
}

// misspoken adds the mistakes of rules called reason that are no set of texts.
func (c *sandboxed) misspoken(m *ast.Module, found *condition.Error) {
	for _, r := range rulesNamed(m, reasonEntry) {
		problem := ""
		switch {
		case r.Default:
			problem = "a set has no default"
		case len(r.Head.Args) > 0:
			problem = "it is a function"
		case !isSet(r) && len(r.Head.Ref()) > 1:
			problem = "it is an object"
		case !isSet(r):
			problem = "it is one value"
		case !isText(c.reason):
			problem = fmt.Sprintf("it holds %s, not texts", types.Sprint(c.reason))
		}
		if problem != "" {
			found.Add(mistake(r.Loc(), "%s says why a rule decides, and %s: write `%[1]s contains sprintf(\"…\", […]) "+
				"if { … }`, or give it another name", reasonEntry, problem))
			return
		}
	}
}

// echoes returns the places of messages that are left out, because they could hold metadata.
func (c *sandboxed) echoes() (all []condition.Mistake) {
	for _, m := range c.messages {
		if !m.kept() {
			all = append(all, mistake(m.rule.Loc(), "%s could hold a value of the metadata", reasonEntry))
		}
	}
	return all
}

// Messages implements [engine.RegoCondition].
func (c *sandboxed) Messages(in *engine.RegoInput, kept *engine.Intent) []string {
	work := in.Work
	if work == nil {
		work = new(condition.Work)
	}
	left := c.budget(in, work)
	texts := make(map[string]bool)
	for _, m := range c.messages {
		if !m.kept() {
			continue
		}
		input, err := c.input(m.input(in, kept))
		if err != nil {
			continue
		}
		own, err := c.textsOf(m.rule, input, left)
		if left.spent {
			return nil
		}
		if err == nil {
			maps.Copy(texts, own)
		}
	}
	all := slices.Sorted(maps.Keys(texts))
	return all[:min(len(all), maxMessages)]
}

// input returns the input for m: each text that m could hold is the kept one.
func (m *messageRule) input(in *engine.RegoInput, kept *engine.Intent) *engine.RegoInput {
	if kept == nil || m.holds == 0 {
		return in
	}
	of := *in
	of.Document = nil
	intent := *in.Intent
	if m.holds&heldTexts != 0 {
		for i := range condition.Members {
			id := condition.Members[i].ID
			*intent.Text(id) = *kept.Text(id)
		}
	}
	of.Intent = &intent
	if m.holds&heldResource != 0 {
		of.Resource = kept.Resource
	}
	if m.holds&heldAgent != 0 {
		of.AgentID = kept.AgentID
	}
	return &of
}

// textsOf returns the texts that a rule adds to its set.
func (c *sandboxed) textsOf(r *ast.Rule, input ast.Value, left *budget) (map[string]bool, error) {
	body := make(ast.Body, 0, len(r.Body)+1)
	for _, e := range r.Body {
		line := *e
		line.Index = len(body)
		body = append(body, &line)
	}
	is := ast.Equality.Expr(ast.NewTerm(c.question.answer), r.Head.Key)
	is.Index = len(body)
	texts := make(map[string]bool)
	err := c.question.iterate(append(body, is), input, left, func(found topdown.QueryResult) error {
		if s, ok := found[c.question.answer].Value.(ast.String); ok {
			if s := spoken(string(s)); s != "" {
				texts[s] = true
			}
		}
		return nil
	})
	return texts, err
}

// controls matches control characters. A message has none, because spoken replaces them.
var controls = regexp.MustCompile(controlsExpression)

const controlsExpression = `\p{Cc}+`

// spoken returns a text in the form of a message, or "" if the text is not UTF-8. A message has one line
// and at most maxMessage characters.
func spoken(s string) string {
	if !utf8.ValidString(s) {
		return ""
	}
	s = controls.ReplaceAllString(s, " ")
	if utf8.RuneCountInString(s) > maxMessage {
		s = string([]rune(s)[:maxMessage])
	}
	return strings.TrimSpace(s)
}
