package engine

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"writ/engine/condition"
)

// action is what a rule's action document says.
type action struct {
	decision Decision
	reason   string
}

// actionDocument is an action as authors write it.
type actionDocument struct {
	Decision *string `json:"decision"`
	Effect   *string `json:"effect"`
	Type     *string `json:"type"`
	Outcome  *string `json:"outcome"`
	Reason   string  `json:"reason"`
}

const actionForm = `want {"decision":"allow|deny|approval_required","reason":"..."}`

func parseAction(doc string) (action, error) {
	if !strings.HasPrefix(strings.TrimLeft(doc, " \t\r\n"), "{") {
		return action{}, inAction("", "is not a JSON object: %s", actionForm)
	}
	var d actionDocument
	if err := Decode([]byte(doc), "", &d); err != nil {
		return action{}, badAction(err)
	}
	member, name, err := d.said()
	if err != nil {
		return action{}, err
	}
	decision, ok := actionDecisions[name]
	switch {
	case !ok && didYouMean(name, decisionNames...) != "":
		return action{},
			inAction("/"+member, "unknown decision %q%s; %s", name, didYouMean(name, decisionNames...), actionForm)
	case !ok:
		return action{}, inAction("/"+member, "unknown decision %q; %s", name, actionForm)
	case utf8.RuneCountInString(d.Reason) > MaxReason:
		return action{}, inAction("/reason", "the reason is longer than %d characters", MaxReason)
	case strings.ContainsFunc(d.Reason, unicode.IsControl):
		return action{}, inAction("/reason", "the reason holds a control character")
	}
	return action{decision: decision, reason: strings.TrimSpace(d.Reason)}, nil
}

// decisionNames are the decisions of actions, each with its other names.
var decisionNames = []string{"deny block", "approval_required wait require_approval", "allow"}

var actionDecisions = map[string]Decision{
	"allow": Allow, "deny": Deny, "block": Deny,
	"approval_required": ApprovalRequired, "wait": ApprovalRequired, "require_approval": ApprovalRequired,
}

// said returns the member that says what to do, and what it says.
func (d *actionDocument) said() (member, name string, err error) {
	keys := map[string]*string{"decision": d.Decision, "effect": d.Effect, "type": d.Type, "outcome": d.Outcome}
	for key, value := range keys {
		switch {
		case value == nil:
		case member != "":
			return "", "", inAction("", "says twice what to do; %s", actionForm)
		default:
			member, name = key, *value
		}
	}
	if member == "" {
		return "", "", inAction("", "does not say what to do; %s", actionForm)
	}
	return member, name, nil
}

// inAction says what is wrong with a value of an action. The place is not in the
// message: actions are short.
func inAction(at, format string, args ...any) error {
	message := fmt.Sprintf(format, args...)
	return &InvalidError{Fields: []FieldError{{Field: "action", Message: message,
		In: condition.Mistake{At: at, Message: message}}}}
}

// badAction reports what [Decode] found under the field "action".
func badAction(err error) error {
	var inv *InvalidError
	if !errors.As(err, &inv) {
		return err
	}
	var out InvalidError
	for _, f := range inv.Fields {
		in := condition.Mistake{Key: f.In.Key, Message: f.Message}
		message := f.Message
		if f.Field != "body" {
			in.At = "/" + f.Field
			message = f.Field + ": " + message
		}
		out.Fields = append(out.Fields, FieldError{Field: "action", Message: message + "; " + actionForm, In: in})
	}
	return &out
}
