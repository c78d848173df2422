package reference

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Condition writes a condition in a form. alt(n) chooses one of n spellings with the same meaning.
func (c Cond) Condition(f Form, alt func(n int) int) string {
	var doc any
	switch f {
	case MatchObject:
		doc = c.matchObject(alt)
	case Tree:
		doc = c.tree(alt)
	case CEL:
		doc = map[string]string{"cel": c.cel(alt)}
	case Rego:
		doc = map[string]string{"rego": c.rego(alt)}
	}
	b, err := json.Marshal(doc)
	if err != nil {
		panic(err)
	}
	return string(b)
}

type object = map[string]any

func (c Cond) matchObject(alt func(int) int) any {
	switch c.Op {
	case "and":
		if merged, ok := c.merged(alt); ok {
			return merged
		}
		return object{"$and": each(c.Kids, func(k Cond) any { return k.matchObject(alt) })}
	case "or":
		return object{"$or": each(c.Kids, func(k Cond) any { return k.matchObject(alt) })}
	case "nor":
		return object{"$nor": each(c.Kids, func(k Cond) any { return k.matchObject(alt) })}
	case "not":
		if k := c.Kids[0]; len(k.Kids) == 0 && k.Op != "and" && alt(2) == 0 {
			return object{k.Field: object{"$not": k.operator()}}
		}
		return object{"$nor": []any{c.Kids[0].matchObject(alt)}}
	}
	s, isText := c.Value.(string)
	if c.Op == "eq" && (!isText || !strings.Contains(s, "*")) || c.Op == "glob" && strings.Contains(s, "*") {
		if alt(2) == 0 {
			return object{c.Field: c.Value}
		}
	}
	return object{c.Field: c.operator()}
}

// merged writes a conjunction as one object with a key for each field. ok is false unless the
// conjunction consists of comparisons with different operators.
func (c Cond) merged(alt func(int) int) (any, bool) {
	if len(c.Kids) == 0 {
		return object{}, true
	}
	out := object{}
	for _, k := range c.Kids {
		if k.Field == "" {
			return nil, false
		}
		fields, _ := out[k.Field].(object)
		if fields == nil {
			fields = object{}
		}
		if _, twice := fields["$"+k.Op]; twice {
			return nil, false
		}
		fields["$"+k.Op] = k.operand()
		out[k.Field] = fields
	}
	return out, alt(2) == 0
}

func (c Cond) operator() object { return object{"$" + c.Op: c.operand()} }

func (c Cond) operand() any {
	if of, ok := c.Value.(Cond); ok {
		return of.operator()
	}
	return c.Value
}

func each(kids []Cond, f func(Cond) any) []any {
	out := []any{}
	for _, k := range kids {
		out = append(out, f(k))
	}
	return out
}

func (c Cond) tree(alt func(int) int) any {
	kids := func() []any { return each(c.Kids, func(k Cond) any { return k.tree(alt) }) }
	switch c.Op {
	case "and":
		return object{"all": kids()}
	case "or":
		return object{"any": kids()}
	case "not":
		return object{"not": c.Kids[0].tree(alt)}
	case "nor":
		return object{"not": object{"any": kids()}}
	}
	if alt(3) == 0 {
		return object{"fact": c.Field, "operator": c.Op, "value": c.operand()}
	}
	return object{"field": c.Field, "op": c.Op, "value": c.operand()}
}

// Sayable reports whether a form can express the condition with the meaning that decisions.md
// gives.
func (c Cond) Sayable(f Form) bool {
	for _, k := range c.Kids {
		if !k.Sayable(f) {
			return false
		}
	}
	_, number := c.Value.(float64)
	metadata := strings.HasPrefix(c.Field, "metadata.")
	_, isCond := c.Value.(Cond)
	switch f {
	case MatchObject:
		return len(c.Kids) > 0 || c.Op != "or" && c.Op != "nor"
	case Tree:
		return !isCond && (len(c.Kids) > 0 || c.Field != "")
	case CEL:
		switch c.Op {
		case "glob", "every", "some", "size":
			return false
		case "exists":
			return metadata
		case "in", "nin":
			return !metadata || !numeric(c.Value)
		}
		return c.Field != "agent.status" && (len(c.Kids) > 0 || c.Field != "")
	}
	if s, ok := c.Value.(string); ok && c.Op == "glob" && strings.Contains(s, `\`) {
		return false // Rego refuses a glob with an escape
	}
	switch c.Op { // Rego has its own limits
	case "nin", "every", "some", "size", "nor":
		return false
	case "and", "or", "not":
		return len(c.Kids) > 0
	case "in":
		return !metadata || !numeric(c.Value)
	}
	return !metadata || !number
}

// conjunction reports whether c is a conjunction of comparisons, possibly with negated equalities.
// The body of one Rego rule can express such a condition.
func (c Cond) conjunction() bool {
	kids := []Cond{c}
	if c.Op == "and" {
		kids = c.Kids
	}
	return !slices.ContainsFunc(kids, func(k Cond) bool {
		return k.Field == "" && (k.Op != "not" || k.Kids[0].Op != "eq")
	})
}

// calls reports whether Rego writes a comparison of c as a call of match.
func (c Cond) calls() bool {
	return c.Op == "regex" || c.Op == "glob" || slices.ContainsFunc(c.Kids, Cond.calls)
}

func numeric(v any) bool {
	for _, one := range v.([]any) {
		if _, ok := one.(float64); ok {
			return true
		}
	}
	return false
}

var celOperators = map[string]string{"eq": "==", "ne": "!=", "gt": ">", "gte": ">=", "lt": "<", "lte": "<="}

func (c Cond) cel(alt func(int) int) string {
	var kids []string
	for _, k := range c.Kids {
		kids = append(kids, "("+k.cel(alt)+")")
	}
	switch c.Op {
	case "and":
		return strings.Join(kids, " && ")
	case "or":
		return strings.Join(kids, " || ")
	case "not":
		return "!" + kids[0]
	case "nor":
		return "!(" + strings.Join(kids, " || ") + ")"
	}
	field := "intent." + c.Field
	key, metadata := strings.CutPrefix(c.Field, "metadata.")
	if metadata && alt(3) == 0 && c.Op != "exists" {
		field = "intent.metadata['" + key + "']"
	}
	switch c.Op {
	case "exists":
		if c.Value.(bool) {
			return "has(" + field + ")"
		}
		return "!has(" + field + ")"
	case "in":
		return field + " in " + literal(c.Value)
	case "nin":
		return "!(" + field + " in " + literal(c.Value) + ")"
	case "regex":
		return field + ".matches(" + literal(c.Value) + ")"
	}
	if n, ok := c.Value.(float64); ok && metadata {
		return fmt.Sprintf("double(%s) %s %s", field, celOperators[c.Op], decimalPoint(n))
	}
	return field + " " + celOperators[c.Op] + " " + literal(c.Value)
}

// decimalPoint writes a number in CEL's notation of a double.
func decimalPoint(n float64) string {
	s := literal(n)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// literal writes a value. JSON, CEL and Rego use the same notation.
func literal(v any) string {
	switch v := v.(type) {
	case string:
		return strconv.Quote(v)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case []any:
		var all []string
		for _, one := range v {
			all = append(all, literal(one))
		}
		return "[" + strings.Join(all, ", ") + "]"
	}
	return fmt.Sprint(v)
}

// rego writes a condition in Rego: as a rule body if it is a conjunction, otherwise as a module.
func (c Cond) rego(alt func(int) int) string {
	var body []string
	conjuncts := []Cond{c}
	if c.Op == "and" {
		conjuncts = c.Kids
	}
	if c.conjunction() && (c.calls() || alt(3) > 0) {
		for _, k := range conjuncts {
			// In Rego a negated call with a missing field is undefined. So only an equality is
			// negated here.
			if k.Op == "not" {
				body = append(body, "not "+k.Kids[0].regoLeaf())
			} else {
				body = append(body, k.regoLeaf())
			}
		}
		return strings.Join(body, []string{"\n", "; "}[alt(2)])
	}
	m := regoModule{text: "package condition\n"}
	name := m.rule(c)
	return m.text + "\nmatch if " + name + "\n"
}

// A regoModule is a module with a rule for each part of a condition.
type regoModule struct {
	text string
	n    int
}

// rule writes the rules for c. It returns the name of the rule that is true if c is true.
func (m *regoModule) rule(c Cond) string {
	var kids []string
	for _, k := range c.Kids {
		kids = append(kids, m.rule(k))
	}
	m.n++
	name := fmt.Sprintf("part%d", m.n)
	bodies := []string{}
	switch c.Op {
	case "and":
		bodies = append(bodies, strings.Join(kids, "\n\t"))
	case "or":
		bodies = kids
	case "not":
		bodies = append(bodies, "not "+kids[0])
	default:
		bodies = append(bodies, c.regoLeaf())
	}
	for _, body := range bodies {
		m.text += "\n" + name + " if {\n\t" + body + "\n}\n"
	}
	return name
}

func (c Cond) regoLeaf() string {
	field := "input.intent." + c.Field
	if c.Field == "agent.status" {
		field = "input.agent.status"
	}
	switch c.Op {
	case "exists":
		if c.Value.(bool) {
			return field
		}
		return "not " + field
	case "in":
		return field + " in " + literal(c.Value)
	case "regex":
		return "regex.match(" + literal(c.Value) + ", " + field + ")"
	case "glob":
		return "glob.match(" + literal(c.Value) + `, ["/"], ` + field + ")"
	}
	return field + " " + celOperators[c.Op] + " " + literal(c.Value)
}
