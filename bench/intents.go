package bench

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"writ.example/writ/bench/load"
	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
)

// Intent is an intent that requests are about. Its texts may have the placeholders of package load.
type Intent struct {
	Weight float64
	Want   string // the decision that it must get; empty: any
	Name   string // its place in the file
	*engine.Intent
}

// intentLine is a line of a file of intents.
type intentLine struct {
	Weight float64        `json:"weight,omitzero"`
	Want   string         `json:"want,omitzero"`
	Intent jsontext.Value `json:"intent"`
}

// templates are what the texts of an intent may have, and the placeholders for them.
var templates = map[string]string{"uuid": load.IntentID, "number": fmt.Sprint(load.Number), "now": load.Time}

var placeholder = regexp.MustCompile(`\{\{([^{}]*)\}\}`)

// mostIntents bounds the intents of a file: each connection has a request for each of them.
const mostIntents = 1000

// ReadIntents reads intents, one a line, such as
//
//	{"weight": 3, "want": "deny", "intent": {"agent_id": "billing-agent", "action_type": "payment.payout", …}}
//
// weight is 1 if it is left out. Without want any decision will do. In the texts of an intent {{uuid}}, {{number}}
// and {{now}} stand for a random UUID, a number that grows, and the time. intent_id is {{uuid}} and issued_at {{now}}
// if they are left out, and policy_id is policyID. If policyID is empty, intents name their policy. Every error
// names the line and the field.
func ReadIntents(text []byte, policyID string) (all []Intent, err error) {
	for i, line := range bytes.Split(text, []byte("\n")) {
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		in, lineErr := readIntent(line, policyID)
		if lineErr != nil {
			err = errors.Join(err, fmt.Errorf("line %d: %w", i+1, lineErr))
		}
		in.Name = fmt.Sprintf("line %d", i+1)
		all = append(all, in)
	}
	switch {
	case err != nil:
		return nil, err
	case len(all) == 0:
		return nil, errors.New(`has no line: want one such as {"want": "allow", "intent": {…}}`)
	case len(all) > mostIntents:
		return nil, fmt.Errorf("has %d intents: want at most %d", len(all), mostIntents)
	}
	return all, nil
}

func readIntent(text []byte, policyID string) (Intent, error) {
	line := intentLine{Weight: 1}
	if err := engine.Decode(text, "", &line); err != nil {
		return Intent{}, mistakes(err)
	}
	if !(line.Weight > 0) || line.Weight > 1e9 {
		return Intent{}, errors.New("weight: want a number above 0, such as 3")
	}
	if _, err := engine.ParseDecision(line.Want); err != nil && line.Want != "" {
		return Intent{}, fmt.Errorf("want: got %q, want allow, deny or approval_required", line.Want)
	}
	if len(line.Intent) == 0 {
		return Intent{}, errors.New("intent: is required")
	}
	in := new(engine.Intent)
	check := func() error { return complete(in, policyID) }
	err := engine.Decode(line.Intent, "intent", in, check)
	if err == nil {
		err = check()
	}
	return Intent{Weight: line.Weight, Want: line.Want, Intent: in}, mistakes(err)
}

// mistakes returns err without its first word where it lists fields.
func mistakes(err error) error {
	var bad *engine.InvalidError
	if !errors.As(err, &bad) {
		return err
	}
	all := make([]string, len(bad.Fields))
	for i, f := range bad.Fields {
		all[i] = f.Field + ": " + f.Message
		if f.Field == "" {
			all[i] = f.Message
		}
	}
	return errors.New(strings.Join(all, "; "))
}

// complete replaces the templates of an intent, adds what may be left out, and checks the result.
func complete(in *engine.Intent, policyID string) error {
	in.IntentID = cmp.Or(in.IntentID, "{{uuid}}")
	in.IssuedAt = cmp.Or(in.IssuedAt, "{{now}}")
	in.PolicyID = cmp.Or(in.PolicyID, policyID)
	in.Normalize()
	bad := new(engine.InvalidError)
	add := func(field, message string) {
		bad.Fields = append(bad.Fields, engine.FieldError{Field: field, Message: message})
	}
	for i := range condition.Members {
		m := &condition.Members[i]
		if err := expand(in.Text(m.ID)); err != nil {
			add(m.Path, err.Error())
		}
	}
	for _, key := range slices.Sorted(maps.Keys(in.Metadata)) {
		value := in.Metadata[key]
		if err := expand(&value); err != nil {
			add("intent.metadata."+key, err.Error())
		}
		in.Metadata[key] = value
	}
	if len(bad.Fields) > 0 {
		return bad
	}
	if err := in.Validate(); err != nil {
		return err
	}
	if policyID != "" && in.PolicyID != policyID {
		add("intent.policy_id", fmt.Sprintf("got %s, want the policy's, %s", in.PolicyID, policyID))
		return bad
	}
	return nil
}

// expand replaces the templates of a text.
func expand(text *string) (err error) {
	*text = placeholder.ReplaceAllStringFunc(*text, func(found string) string {
		name := strings.TrimSpace(strings.Trim(found, "{}"))
		if templates[name] == "" {
			err = fmt.Errorf("%s is no template: want {{uuid}}, {{number}} or {{now}}", found)
		}
		return templates[name]
	})
	return err
}

// states reports whether one of the intents states a fact, for which its key needs a scope.
func states(all []Intent) bool {
	return slices.ContainsFunc(all, func(in Intent) bool {
		for key := range in.Metadata {
			if strings.HasPrefix(key, "fact.") {
				return true
			}
		}
		return false
	})
}
