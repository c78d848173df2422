package reference

import (
	"math/big"
	"regexp"
	"slices"
	"strings"
)

// A Form is one of the four forms of a condition, such as a tree or CEL. The form determines the
// meaning of a missing key.
type Form int

// The forms have the order of decisions.md.
const (
	MatchObject Form = iota
	Tree
	CEL
	Rego
)

// A Cond is one comparison, or a combination of conditions.
type Cond struct {
	Op    string // and, or, not, nor, or an operator: eq ne gt gte lt lte in nin exists glob regex every some size
	Kids  []Cond
	Field string // such as resource, cost.amount_minor or metadata.env
	Value any    // string, float64, bool, []any; for every and some also a Cond without a field
}

// A truth is the value of a condition.
type truth int

const (
	no truth = iota
	broken
	yes
)

func of(b bool) truth {
	if b {
		return yes
	}
	return no
}

func not(t truth) truth { return yes - t }

// asking evaluates a condition for one case.
type asking struct {
	e        *evaluation
	form     Form
	stricter bool   // whether the rule denies or requires approval
	resource string // the reading of the resource, for a condition in CEL or Rego
	agent    string // the name of the agent, for a condition in CEL or Rego
}

// matches evaluates the condition of a rule. A condition in CEL or Rego is evaluated once for
// each reading of the resource, and unless the rule allows, for each name of the agent.
func (e *evaluation) matches(r Rule) (truth, error) {
	a := asking{e: e, form: r.Form, stricter: r.Decision != Allow, agent: e.c.Intent.AgentID}
	if r.Form == MatchObject || r.Form == Tree {
		return a.ask(r.Means, a.stricter)
	}
	result := no
	names := []string{a.agent}
	if a.stricter {
		names = e.c.agentNames()
	}
	for _, name := range names {
		a.agent = name
		t, err := a.asked(r)
		if err != nil {
			return no, err
		}
		result = max(result, t)
	}
	return result, nil
}

// asked evaluates the condition for each reading of the resource.
func (a asking) asked(r Rule) (truth, error) {
	result := no
	if !a.stricter {
		result = yes
	}
	for _, s := range a.e.res.texts(a.stricter) {
		a.resource = s
		t, err := a.ask(r.Means, a.stricter)
		if err != nil {
			return no, err
		}
		if a.stricter {
			result = max(result, t)
		} else {
			result = min(result, t)
		}
	}
	return result, nil
}

// texts returns the readings as texts. For an allowance, mailto: is cut off.
func (r *Resource) texts(block bool) []string {
	readings, out := r.allow, []string(nil)
	if block {
		readings, out = r.block, []string{r.raw}
	}
	for _, rd := range readings {
		s := show(rd.full())
		if rd.by == Addresses && !block {
			s = strings.TrimPrefix(s, "mailto:")
		}
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// ask evaluates c. stricter says whether the outcome is stricter if c is true.
func (a asking) ask(c Cond, stricter bool) (truth, error) {
	switch c.Op {
	case "and", "or":
		result := of(c.Op == "and")
		for _, k := range c.Kids {
			t, err := a.ask(k, stricter)
			if err != nil {
				return no, err
			}
			if c.Op == "and" {
				result = min(result, t)
			} else {
				result = max(result, t)
			}
		}
		return result, nil
	case "not":
		t, err := a.ask(c.Kids[0], !stricter)
		return not(t), err
	case "nor":
		t, err := a.ask(Cond{Op: "or", Kids: c.Kids}, !stricter)
		return not(t), err
	}
	return a.leaf(c, stricter)
}

func (a asking) leaf(c Cond, stricter bool) (truth, error) {
	if c.Field == "resource" && (a.form == MatchObject || a.form == Tree) {
		return a.resourceLeaf(c, stricter)
	}
	if c.Field == "agent_id" && (a.form == MatchObject || a.form == Tree) && c.Op != "exists" {
		return a.agentLeaf(c, stricter), nil
	}
	v, ok := a.value(c.Field)
	if c.Op == "exists" {
		return of(ok == c.Value.(bool)), nil
	}
	if !ok {
		a.e.notes.Missing = true
		switch a.form {
		case CEL:
			return a.failed(broken, "missing", c.Field), nil
		case Rego:
			return no, nil
		}
		return of(c.Op == "ne" || c.Op == "nin"), nil
	}
	if c.Op == "every" || c.Op == "some" || c.Op == "size" {
		return a.failed(compareElements(c, v, stricter), "not_decimal", c.Field), nil
	}
	t := compare(c, v)
	if a.form == Rego && c.Op == "glob" {
		t = of(globString(c.Value.(string), v, parseOPA))
	}
	return a.failed(t, "not_decimal", c.Field), nil
}

// failed returns t. If t is broken, it notes why.
func (a asking) failed(t truth, cause, field string) truth {
	if t == broken {
		a.e.notes.Missing = a.e.notes.Missing || cause == "missing"
		a.e.notes.Erred = a.e.notes.Erred || cause != "missing"
		switch {
		case cause != "missing" && (a.form == CEL || a.form == Rego): // a conversion to a number fails
			cause, field = "function", ""
		case strings.HasPrefix(field, "cost."):
			field = "cost"
		}
		a.e.whys = append(a.e.whys, Why{cause, field})
	}
	return t
}

// value returns the value of a field, and whether the field exists. An amount is a string of
// digits.
func (a asking) value(field string) (string, bool) {
	in := a.e.c.Intent
	if key, ok := strings.CutPrefix(field, "metadata."); ok {
		v, ok := in.Metadata[key]
		return v, ok
	}
	if strings.HasPrefix(field, "cost.") && in.Cost == nil {
		return "", false
	}
	switch field {
	case "agent_id":
		return a.agent, true
	case "action_type":
		return in.ActionType, true
	case "resource":
		return a.resource, true
	case "cost.amount_minor":
		return big.NewInt(in.Cost.AmountMinor).String(), true
	case "cost.currency":
		return in.Cost.Currency, true
	case "agent.status":
		return a.e.status, true
	}
	return "", false
}

// compare compares a value with the value of c. The field must exist.
func compare(c Cond, v string) truth {
	switch c.Op {
	case "ne":
		return not(compare(Cond{Op: "eq", Value: c.Value}, v))
	case "nin":
		return not(compare(Cond{Op: "in", Value: c.Value}, v))
	case "in":
		result := no
		for _, one := range c.Value.([]any) {
			result = max(result, compare(Cond{Op: "eq", Value: one}, v))
		}
		return result
	case "eq", "gt", "gte", "lt", "lte":
		return order(c, v)
	case "glob":
		return of(globString(c.Value.(string), v, parseGlob))
	case "regex":
		return of(regexp.MustCompile(c.Value.(string)).MatchString(v))
	}
	panic("no operator " + c.Op)
}

// decimal matches the strings that a numeric comparison accepts.
var decimal = regexp.MustCompile(`^[+-]?[0-9]+(\.[0-9]+)?$`)

func order(c Cond, v string) truth {
	var sign int
	switch want := c.Value.(type) {
	case float64:
		if !decimal.MatchString(v) {
			return broken
		}
		n, _ := new(big.Rat).SetString(v)
		sign = n.Cmp(new(big.Rat).SetFloat64(want))
	case string:
		sign = strings.Compare(v, want)
	}
	return of(map[string]bool{"eq": sign == 0, "gt": sign > 0, "gte": sign >= 0, "lt": sign < 0, "lte": sign <= 0}[c.Op])
}

// resourceLeaf evaluates one comparison with the resource. If a true result makes the outcome
// stricter, one matching reading for a block is enough. Otherwise every reading for an allowance
// must match. A negative comparison is the negation of its positive form.
func (a asking) resourceLeaf(c Cond, stricter bool) (truth, error) {
	switch c.Op {
	case "exists":
		return of(c.Value.(bool)), nil
	case "ne":
		t, err := a.resourceLeaf(Cond{Op: "eq", Field: c.Field, Value: c.Value}, !stricter)
		return not(t), err
	case "nin":
		t, err := a.resourceLeaf(Cond{Op: "in", Field: c.Field, Value: c.Value}, !stricter)
		return not(t), err
	case "eq":
		return a.heldAgainst(stricter, quote(c.Value.(string))), nil
	case "in":
		var all []*Pattern
		for _, v := range c.Value.([]any) {
			all = append(all, quote(v.(string)))
		}
		return a.heldAgainst(stricter, all...), nil
	case "glob":
		p, err := ReadPattern(c.Value.(string))
		if err != nil {
			return no, err
		}
		return a.heldAgainst(stricter, p), nil
	}
	result := of(!stricter)
	for _, s := range a.e.res.texts(stricter) {
		if stricter {
			result = max(result, compare(c, s))
		} else {
			result = min(result, compare(c, s))
		}
	}
	return result, nil
}

// agentLeaf evaluates one comparison with the agent. If a true result makes the outcome stricter, it
// holds if it holds for one of the agent's names, both sides as they are written or folded. Otherwise
// the name that was sent counts. A negative comparison is the negation of its positive form.
func (a asking) agentLeaf(c Cond, stricter bool) truth {
	if positive := map[string]string{"ne": "eq", "nin": "in"}[c.Op]; positive != "" {
		c.Op = positive
		return not(a.agentLeaf(c, !stricter))
	}
	if !stricter {
		return compare(c, a.e.c.Intent.AgentID)
	}
	folded := c
	switch v := c.Value.(type) {
	case string:
		folded.Value = foldID(v)
		if c.Op == "regex" {
			folded.Value = "(?i)" + v
		}
	case []any:
		var all []any
		for _, s := range v {
			all = append(all, foldID(s.(string)))
		}
		folded.Value = all
	}
	result := no
	for _, name := range a.e.c.agentNames() {
		for _, form := range []string{name, foldID(name)} {
			result = max(result, compare(c, form), compare(folded, form))
		}
	}
	return result
}

func (a asking) heldAgainst(stricter bool, patterns ...*Pattern) truth {
	if !stricter {
		return of(Allowed(patterns, a.e.res))
	}
	return of(slices.ContainsFunc(patterns, func(p *Pattern) bool {
		_, ok := Blocked(p, a.e.res)
		return ok
	}))
}

// quote returns the pattern that matches the text s and nothing else.
func quote(s string) *Pattern {
	p := &Pattern{raw: s, readings: map[string][]text{}}
	if readings, err := read(text(s)); err == nil {
		p.add(readings)
	}
	return p
}
