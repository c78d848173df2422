package rego

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"writ.example/writ/engine/condition"
)

// mistake returns a mistake at loc, which may be nil.
func mistake(loc *ast.Location, format string, args ...any) condition.Mistake {
	m := condition.Mistake{Message: fmt.Sprintf(format, args...)}
	if loc != nil {
		m.File, m.Line, m.Column = loc.File, loc.Row, loc.Col
	}
	return m
}

func refuse(loc *ast.Location, format string, args ...any) error {
	return &condition.Error{Mistakes: []condition.Mistake{mistake(loc, format, args...)}}
}

// explain turns OPA's errors into mistakes. Each has one line and, if possible, a hint.
func explain(err error) error {
	var list ast.Errors
	if !errors.As(err, &list) {
		return err
	}
	list.Sort()
	var out condition.Error
	for i, e := range list {
		if i+1 < len(list) && e.Message == illegal && list[i+1].Location.Equal(e.Location) {
			continue // the next error explains the mistake better
		}
		out.Add(mistake(e.Location, "%s", message(e)))
	}
	return out.Err()
}

// illegal is OPA's message for a character that is not Rego.
const illegal = "illegal token"

// unsafe matches OPA's message for a variable that nothing binds.
var unsafe = regexp.MustCompile(`^var (\S+) is unsafe`)

func message(e *ast.Error) string {
	if name, ok := strings.CutPrefix(e.Message, "undefined function "); ok {
		if b, known := ast.BuiltinMap[name]; known {
			return fmt.Sprintf("the built-in function %s cannot be called: %s", name, cannotCall(b))
		}
		if meant := condition.Meant(name, append(allowed(), itemsName)); meant != "" {
			return fmt.Sprintf("%s: did you mean %s?", e.Message, meant)
		}
	}
	if m := unsafe.FindStringSubmatch(e.Message); m != nil {
		return unbound(m[1])
	}
	switch d := e.Details.(type) {
	case *ast.RefErrInvalidDetail:
		return undefined(strings.TrimSuffix(e.Message, ":"), fmt.Sprint(d.Ref[d.Pos].Value), choices(d.OneOf))
	case *ast.ArgErrDetail:
		return fmt.Sprintf("%s: have %v, want %v", e.Message, d.Have, d.Want)
	case *ast.UnificationErrDetail:
		return fmt.Sprintf("%s: %v is not %v", e.Message, d.Left, d.Right)
	}
	return syntax(oneLine(e.Message))
}

// undefined handles a reference to an unknown member. It adds the known members to the message.
func undefined(message, member string, names []string) string {
	name := strings.Trim(member, `"`)
	_, ofIntent := condition.MemberNamed(name)
	switch meant := condition.Meant(name, names); {
	case len(names) == 0:
		return message
	case ofIntent:
		return fmt.Sprintf("%s: did you mean input.intent.%s?", message, name)
	case meant != "":
		return fmt.Sprintf("%s: did you mean %s? %s is none of %s", message, meant, member, strings.Join(names, ", "))
	}
	return fmt.Sprintf("%s: %s is none of %s", message, member, strings.Join(names, ", "))
}

// unbound returns the message for a variable without a value.
func unbound(name string) string {
	switch name {
	case "and":
		return "Rego has no and: write each condition on a line of its own, all of them must hold"
	case "or":
		return "Rego has no or: write a module with a rule `match if { … }` for each alternative"
	case "intent", "agent", "policy":
		return fmt.Sprintf("%s is never bound: did you mean input.%s?", name, name)
	}
	members := make([]string, 0, len(condition.Members)+1)
	for i := range condition.Members {
		members = append(members, condition.Members[i].Name)
	}
	if meant := condition.Meant(name, append(members, "cost", "metadata")); meant != "" {
		return fmt.Sprintf("%s is never bound: did you mean input.intent.%s?", name, meant)
	}
	return fmt.Sprintf("%[1]s is never bound: did you mean input.intent.…, or %[2]s in quotes?", name,
		condition.Quote(name))
}

// syntax adds a hint to OPA's message for a syntax error: how to write it in Rego.
func syntax(message string) string {
	for found, instead := range map[string]string{
		"unexpected and token":  "Rego has no &&: write each condition on a line of its own, all of them must hold",
		"unexpected or token":   "Rego has no ||: write a module with a rule `match if { … }` for each alternative",
		illegal:                 `text is written in double quotes, "…"`,
		"unexpected if keyword": "write the body alone, or a module that begins with a package",
	} {
		if message == found {
			return message + ": " + instead
		}
	}
	return message
}

// choices returns the names of an object's members.
func choices(values []ast.Value) []string {
	names := make([]string, 0, len(values))
	for _, v := range values {
		if s, ok := v.(ast.String); ok {
			names = append(names, string(s))
		}
	}
	return names
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
