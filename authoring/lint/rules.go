package lint

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
	"writ.example/writ/engine/proof"
)

// Rules returns the warnings about rules, in the order of the rules. The field of a warning begins
// with "rules[i]". A nil rule is one that does not compile. An inactive rule decides nothing, so it
// is not compared with other rules.
func Rules(rules []*engine.CompiledRule) []Warning {
	l := newLinter(rules)
	for i, r := range rules {
		if r == nil {
			continue
		}
		l.itself(i, r)
		l.twice(i)
	}
	for _, r := range l.deciding {
		l.shadow(r)
		l.lifts(r)
	}
	return slices.Concat(l.found...)
}

// Rule returns the warnings about a rule that hold whatever other rules there are, without the prefix
// "rules[0]." in their fields.
func Rule(r *engine.CompiledRule) []Warning {
	l := newLinter([]*engine.CompiledRule{r})
	l.alone = true
	l.itself(0, r)
	for _, r := range l.deciding {
		l.shadow(r)
	}
	for i := range l.found[0] {
		w := &l.found[0][i]
		w.Field = strings.TrimPrefix(w.Field, at("rules", 0)+".")
	}
	return l.found[0]
}

// Lists returns a warning for each rule that uses a list whose name is not in names. The service
// refuses such a rule if the organization has no such list.
func Lists(rules []*engine.CompiledRule, names []string) (found []Warning) {
	for i, r := range rules {
		if r == nil {
			continue
		}
		for _, name := range r.Lists() {
			if !slices.Contains(names, name) {
				found = append(found, Warning{
					Field: at("rules", i) + ".condition", Rule: unknownList,
					Message: fmt.Sprintf("looks in the list %s, which no document defines", condition.Quote(name)),
					Instead: fmt.Sprintf("define it beside the rules: {name: %s, values: […]}; or correct the name",
						name),
				})
			}
		}
	}
	return found
}

// linter collects the warnings of a set of rules.
type linter struct {
	rules   []*engine.CompiledRule
	reviews []condition.Review
	// found has the warnings of each rule.
	found  [][]Warning
	prover *proof.Prover
	// deciding has the active rules in deciding order.
	deciding []*active
	index    proof.Index[*active]
	seen     seen
	// alone says that the other rules are not known.
	alone bool
}

type active struct {
	*engine.CompiledRule
	// at is the rule's index in the document. place is its index in deciding order.
	at, place int
	// matches is true for the intents that the rule matches. ends is true for the intents after
	// which no other rule is evaluated.
	matches, ends *condition.Node
	cases         []*proof.Case // the cases in which the field matches is true
	// oneReading is true if the whole condition is evaluated once for each reading of the resource.
	oneReading bool
	// shadowed is true once a proof shows that the rule never decides.
	shadowed bool
}

func newLinter(rules []*engine.CompiledRule) *linter {
	l := &linter{
		rules: rules, reviews: make([]condition.Review, len(rules)), found: make([][]Warning, len(rules)),
		prover: proof.New(), seen: seen{map[string]int{}, map[string]int{}, map[string]int{}},
	}
	for i, r := range rules {
		if r == nil {
			continue
		}
		l.reviews[i] = r.Review()
		if !r.Rule().IsActive {
			continue
		}
		a := &active{CompiledRule: r, at: i, matches: r.Matches(), ends: r.Certain()}
		if r.Outcome() == engine.Deny { // if a rule that denies has an error, no further rule is evaluated either
			a.ends = a.matches
		}
		a.cases = l.prover.Cases(a.matches)
		a.oneReading = r.AsksEachReading()
		l.deciding = append(l.deciding, a)
	}
	slices.SortStableFunc(l.deciding, func(a, b *active) int {
		return engine.CompareDeciding(a.CompiledRule, b.CompiledRule)
	})
	for place, a := range l.deciding {
		a.place = place
		l.index.Add(a.cases, a)
	}
	return l
}

func (l *linter) add(i int, member, rule, message, instead string) {
	field := at("rules", i)
	if member != "" {
		field += "." + member
	}
	l.found[i] = append(l.found[i], Warning{Field: field, Rule: rule, Message: message, Instead: instead})
}

// name returns the name of a rule for messages. An index would say little, because rules come from
// several files.
func (l *linter) name(i int) string {
	r := l.rules[i].Rule()
	if r.ID == "" {
		return condition.Quote(r.Name)
	}
	return fmt.Sprintf("%s (%s)", condition.Quote(r.Name), r.ID)
}

func (l *linter) itself(i int, r *engine.CompiledRule) {
	review := l.reviews[i]
	if r.Outcome() == engine.Allow {
		l.callerLifts(i, review)
	} else {
		if !l.alone { // another rule can say what absence means
			l.unguarded(i, r, review)
		}
		if review.ExceptsResource {
			l.add(i, "condition", exceptsResource,
				"excepts a resource by a negated comparison, and is asked once for each reading of the resource: "+
					"the reading without the query, or without a slash at the end, is another text, so the rule also "+
					"applies to the excepted resource",
				`write a match object such as {"resource":{"$ne":"…"}}`)
		}
	}
	if review.CallerTime {
		l.add(i, "condition", callerTime, "rests on issued_at, which the caller fills in",
			"compare decided_at, the time of the decision")
	}
	if review.TextOrder != "" {
		const form = `orders a text by %s, and texts compare as text, in which "10" comes before "9"`
		l.add(i, "condition", stringOrder, fmt.Sprintf(form, condition.Quote(review.TextOrder)),
			"compare numbers: int(…) or decimal_compare(…) in CEL, to_number(…) in Rego")
	}
	for _, m := range review.Echoes {
		l.add(i, "condition", echoes,
			fmt.Sprintf("at /rego: %d:%d: %s, so it is left out of the reasons", m.Line, m.Column, m.Message),
			"compare the metadata in the body, and write a constant text in the head")
	}
	for _, c := range l.prover.Counters(r.Certain()) {
		if c.Truth != condition.True {
			l.add(i, "condition", countsOthers,
				fmt.Sprintf("is about intents that the counter %s does not count, and for those each comparison with "+
					"it is false", condition.Quote(c.Counter.Key)),
				"give the counter the action types of the rule, a sum also its currency")
		}
	}
	var unrendered *engine.InvalidError
	if errors.As(r.Unrendered(), &unrendered) {
		l.add(i, "condition", NoRego,
			fmt.Sprintf("%s: writ rego and writ test --rego cannot take the rules", unrendered.Fields[0].In.Message),
			"compare fields with constants, or write the condition in Rego")
	}
	for pattern := range condition.Patterns(r.Matches(), r.Certain()) {
		if sign := regexSign(pattern); sign != "" {
			l.add(i, "condition", regexLike, looksLikeRegex(pattern, sign), globInstead)
			break
		}
	}
}

func (l *linter) callerLifts(i int, review condition.Review) {
	var keys []string
	for _, name := range review.Fields {
		if key, ok := strings.CutPrefix(name, "metadata."); name == "metadata" || ok &&
			!strings.HasPrefix(key, engine.FactPrefix) {
			keys = append(keys, name)
		}
	}
	if len(keys) > 0 {
		l.add(i, "condition", callerLifts,
			fmt.Sprintf("allows by %s, which is the agent's own word", strings.Join(keys, " and ")),
			"rest on the action type, the resource, the cost or the agent, or on a key that begins with "+
				engine.FactPrefix+", which only integrations send")
	}
}

// seen has the index of the first rule with each id, each name and each content.
type seen struct{ ids, names, rules map[string]int }

// twice warns if an earlier rule has the same content, id or name as rule i.
func (l *linter) twice(i int) {
	r := l.rules[i].Rule()
	if first, ok := place(l.seen.ids, r.ID, i); ok && r.ID != "" {
		l.add(i, "id", duplicate, fmt.Sprintf("the id %s is also the id of %s", condition.Quote(r.ID), l.name(first)),
			"give each rule an id of its own")
		return
	}
	if first, ok := place(l.seen.rules, l.content(i), i); ok {
		l.add(i, "condition", duplicate,
			fmt.Sprintf("has the condition, the action and the priority of %s", l.name(first)), "remove one of the two")
		return
	}
	if first, ok := place(l.seen.names, r.Name, i); ok && cmp.Or(r.ID, l.rules[first].Rule().ID) == "" {
		l.add(i, "name", duplicate, "another rule has the same name, and neither has an id",
			"give each rule a name or an id of its own")
	}
}

func place(seen map[string]int, key string, i int) (first int, ok bool) {
	if first, ok = seen[key]; !ok {
		seen[key] = i
	}
	return first, ok
}

// content returns the parts of a rule that affect decisions. Name and reason are not among them.
func (l *linter) content(i int) string {
	r := l.rules[i]
	doc := jsontext.Value(r.Rule().Condition)
	if err := doc.Canonicalize(); err != nil {
		return fmt.Sprintf("rules[%d]", i) // cannot happen: the rule has compiled
	}
	return fmt.Sprint(r.Rule().IsActive, r.Rule().Priority, r.Outcome(), string(doc))
}
