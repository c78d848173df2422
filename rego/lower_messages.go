package rego

import (
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
)

// keptEntry begins the name of the set of messages in an export that leaves out some of a module's.
const keptEntry = "kept_reason"

// exported returns the rules of the messages of a module that an export has, and whether these are all.
// No message of an export may hold a member of left.
func (l *Libraries) exported(source string, left held) (kept []messageRule, all bool, err error) {
	if m, err := parseCondition(source); err != nil || !speaks(m) {
		return nil, false, err
	}
	c, err := l.Compile(source)
	if err != nil {
		return nil, false, err // cannot happen: the source has compiled
	}
	for _, m := range c.(*sandboxed).messages {
		if m.holds&left == 0 {
			kept = append(kept, m)
		}
	}
	return kept, len(kept) == len(c.(*sandboxed).messages), nil
}

// keep adds a set to m that has only the messages of kept. source is the source of m. It returns the
// name of the set.
func keep(m *ast.Module, source string, kept []messageRule) string {
	name := keptEntry
	for strings.Contains(source, name) {
		name += "_"
	}
	for _, r := range rulesNamed(m, reasonEntry) {
		if slices.ContainsFunc(kept, func(k messageRule) bool { return k.rule.Loc().Offset == r.Loc().Offset }) {
			r = r.Copy()
			r.Head.Name = ast.Var(name)
			r.Head.Reference = ast.Ref{ast.VarTerm(name).SetLocation(r.Head.Ref()[0].Location)}
			m.Rules = append(m.Rules, r)
		}
	}
	return name
}

// messagesOfRules is the part of a policy's module that makes reasons of messages, as
// [sandboxed.Messages] does.
var messagesOfRules = fmt.Sprintf("reasons_of(code, rule, messages) := [concat(\"\", [code, text, rule]) |\n"+
	"\tsome text in array.slice(\n\t\tsort({text |\n\t\t\tsome message in messages\n\t\t\tis_string(message)\n"+
	"\t\t\ttext := trim_space(substring(regex.replace(message, `%s`, \" \"), 0, %d))\n"+
	"\t\t\ttext != \"\"\n\t\t}),\n\t\t0, %d,\n\t)\n]", controlsExpression, maxMessage, maxMessages)

// messages adds the definition of the messages of a rule: rule_messages has an array of reasons for its
// place. asked has the lines that make the input of a reading and ask the condition about it. set is a
// reference to the messages.
//
// The engine takes the first reading that matches for a block, and the last one for an allowance, all
// of which match.
func (l *lowering) messages(place int, r *engine.CompiledRule, asked []string, set string) {
	some, at := l.asked(r), "0"
	if some == everyAllowed {
		some, at = "some reading in allowed_readings", "count(inputs) - 1"
	}
	code, rule, _ := strings.Cut(r.Reason("\x00"), "\x00")
	l.said = append(l.said, fmt.Sprintf("rule_messages[%d] := reasons_of(%s, %s, messages) if {\n"+
		"\tinputs := [asked |\n\t\t%s\n\t\t%s\n\t]\n\tmessages := %s with input as inputs[%s]\n}",
		place, condition.Quote(code), condition.Quote(rule), some, strings.Join(asked, "\n\t\t"), set, at))
}
