package rego

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"

	"writ.example/writ/engine/condition"
)

// A time zone is a constant of the condition. If it were the caller's, the caller would choose the
// hour. "Local" and abbreviations such as CET mean something else on each machine, so that replicas
// would decide differently. The author sees the mistakes that [reviewer.zones] finds. It cannot see some
// zones, for example one that is passed to a function of the module. [zonesKnown] checks those in the
// call.

// zoned returns how many arguments of a function, from the first, are a time: nanoseconds, or a
// list [nanoseconds, zone].
func zoned(function string) int {
	switch function {
	case ast.Clock.Name, ast.Date.Name, ast.Weekday.Name, ast.AddDate.Name, ast.Format.Name:
		return 1
	case ast.Diff.Name:
		return 2
	}
	return 0
}

// zones finds time zones that are not constant or not in the IANA's database, and layouts that read
// the abbreviation of a zone.
func (r *reviewer) zones(found *condition.Error) {
	constants := r.constants()
	calls(r.module, func(operator *ast.Term, args []*ast.Term) {
		function := operator.Value.String()
		if function == ast.ParseNanos.Name && len(args) > 0 {
			if layout, ok := textOf(args[0], constants); ok && readsAbbreviation(layout) {
				found.Add(mistake(args[0].Location, "%s: the layout %q reads the abbreviation of a time zone, which "+
					`means something else on each machine: want a difference from UTC, such as in "RFC1123Z"`, function, layout))
			}
			return
		}
		for _, arg := range args[:min(zoned(function), len(args))] {
			if problem := zoneProblem(arg, constants); problem != "" {
				found.Add(mistake(arg.Location, "%s: %s", function, problem))
			}
		}
	})
}

// constants are the terms that have a name: of variables, of rules without a body, of imports. A
// name that has two terms has nil.
type constants map[ast.Var]*ast.Term

func (c constants) add(v ast.Var, t *ast.Term) {
	if other, twice := c[v]; twice && (other == nil || t == nil || !t.Equal(other)) {
		t = nil
	}
	c[v] = t
}

// assigned adds the variables of x to c and returns c.
func (c constants) assigned(x any) constants {
	ast.WalkExprs(x, func(e *ast.Expr) bool {
		if e.IsAssignment() || e.IsEquality() {
			if v, ok := e.Operand(0).Value.(ast.Var); ok {
				c.add(v, e.Operand(1))
			}
		}
		return false
	})
	return c
}

// constants returns the constants of the module, but for imports.
func (r *reviewer) constants() constants {
	found := make(constants)
	for _, rule := range r.module.Rules {
		for _, arg := range rule.Head.Args {
			if v, ok := arg.Value.(ast.Var); ok {
				found.add(v, nil)
			}
		}
		v, ok := rule.Head.Ref()[0].Value.(ast.Var)
		plain := len(rule.Head.Ref()) == 1 && len(rule.Head.Args) == 0 && rule.Head.Key == nil
		for of := rule; ok && of != nil; of = of.Else {
			if plain {
				found.add(v, of.Head.Value)
			} else {
				found.add(v, nil)
			}
		}
	}
	return found.assigned(r.module)
}

// named returns t, or the term that t is a name of.
func named(t *ast.Term, constants constants) *ast.Term {
	for range maxNames {
		v, ok := t.Value.(ast.Var)
		if !ok || constants[v] == nil {
			return t
		}
		t = constants[v]
	}
	return t
}

func textOf(t *ast.Term, constants constants) (text string, ok bool) {
	s, ok := named(t, constants).Value.(ast.String)
	return string(s), ok
}

// zoneProblem returns why an argument is no time that a condition can use, or "".
func zoneProblem(arg *ast.Term, constants constants) string {
	list, ok := named(arg, constants).Value.(*ast.Array)
	if !ok || list.Len() < 2 {
		return ""
	}
	name, ok := textOf(list.Elem(1), constants)
	if !ok {
		return `the time zone must be a constant, such as "Europe/Berlin"`
	}
	if _, err := condition.NamedZone(name); err != nil {
		return err.Error()
	}
	return ""
}

// readsAbbreviation reports whether a layout reads a name such as CET.
func readsAbbreviation(layout string) bool {
	switch layout {
	case "UnixDate", "RFC822", "RFC850", "RFC1123":
		return true
	}
	return strings.Contains(layout, "MST")
}

// zonesKnown returns the check of the time zones that functions are called with. A zone must be in
// the IANA's database and, unless the condition is older than that rule, a text in its modules.
func zonesKnown(modules []*ast.Module) func(function string, args []*ast.Term) error {
	var texts []string
	var found condition.Error
	for _, m := range modules {
		ast.WalkTerms(m, func(t *ast.Term) bool {
			if s, ok := t.Value.(ast.String); ok {
				texts = append(texts, string(s))
			}
			return false
		})
		(&reviewer{module: m}).zones(&found)
	}
	older := found.Err() != nil
	return func(function string, args []*ast.Term) error {
		for _, arg := range args[:min(zoned(function), len(args))] {
			list, ok := arg.Value.(*ast.Array)
			if !ok || list.Len() < 2 {
				continue
			}
			zone, ok := list.Elem(1).Value.(ast.String)
			if !ok {
				continue // the function refuses it
			}
			_, err := condition.NamedZone(string(zone))
			if err != nil || !older && !slices.Contains(texts, string(zone)) {
				return errZone
			}
		}
		return nil
	}
}

// errZone is the error of a call. It does not name the zone, which may be a metadata value.
var errZone = errors.New("the time zone is no constant of the condition or not in the IANA's database")

// parseNanos is OPA's time.parse_ns, but for it no zone is local. OPA reads the abbreviation of a
// zone as the machine's zone does.
func parseNanos(_ topdown.BuiltinContext, args []*ast.Term, iter func(*ast.Term) error) error {
	layout, ok1 := args[0].Value.(ast.String)
	text, ok2 := args[1].Value.(ast.String)
	if !ok1 || !ok2 {
		return errors.New("time.parse_ns: want two texts")
	}
	at, err := time.ParseInLocation(cmp.Or(namedLayouts[string(layout)], string(layout)), string(text), time.UTC)
	if err != nil || at.Before(time.Unix(0, -1<<63)) || at.After(time.Unix(0, 1<<63-1)) {
		return errors.New("time.parse_ns: the text is no time in this layout")
	}
	return iter(ast.NewTerm(ast.Number(strconv.FormatInt(at.UnixNano(), 10))))
}

// namedLayouts are the layouts that OPA knows by name.
var namedLayouts = map[string]string{
	"ANSIC": time.ANSIC, "UnixDate": time.UnixDate, "RubyDate": time.RubyDate, "RFC822": time.RFC822,
	"RFC822Z": time.RFC822Z, "RFC850": time.RFC850, "RFC1123": time.RFC1123, "RFC1123Z": time.RFC1123Z,
	"RFC3339": time.RFC3339, "RFC3339Nano": time.RFC3339Nano,
}
