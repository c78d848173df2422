package engine

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"writ/engine/glob"
)

// askTree evaluates a tree without CEL: it is the meaning that both renderings
// are held to.
func askTree(t testing.TB, n *node, f *frame) bool {
	t.Helper()
	ask := func(k *node) bool { return askTree(t, k, f) }
	switch n.kind {
	case nodeAll:
		return !slices.ContainsFunc(n.kids, func(k *node) bool { return !ask(k) })
	case nodeAny:
		return slices.ContainsFunc(n.kids, ask)
	case nodeNot:
		return !ask(n.kids[0])
	case nodeLeaf:
		return askLeaf(t, n, f)
	}
	t.Fatal("askTree of an opaque node")
	return false
}

func askLeaf(t testing.TB, n *node, f *frame) bool {
	t.Helper()
	if n.isResource() && n.reads != readsOne {
		return askReadings(t, n, f)
	}
	if n.op == opExists {
		return present(n.field, f)
	}
	if !present(n.field, f) {
		return false
	}
	return slices.ContainsFunc(n.values, func(c constant) bool {
		switch n.field.kind {
		case kindInt, kindDigits:
			return ordered(n.op, compareInt(number(n.field, f), c.num))
		case kindTime:
			return ordered(n.op, timeOf(t, f.in.Intent.IssuedAt).Compare(timeOf(t, c.str)))
		}
		return askText(t, n.op, text(n.field, f), c.str)
	})
}

// askReadings asks a leaf of each reading.
func askReadings(t testing.TB, n *node, f *frame) bool {
	t.Helper()
	one := *n
	one.reads = readsOne
	defer f.setReading(f.reading)
	if n.reads == readsAny {
		for i := range f.readings.BlockLen() {
			if f.setReading(f.readings.BlockAt(i)); askResource(t, &one, f, glob.Blocks) {
				return true
			}
		}
		return false
	}
	for i := range f.readings.AllowLen() {
		if f.setReading(f.readings.AllowAt(i)); !askResource(t, &one, f, glob.Allows) {
			return false
		}
	}
	return true
}

// askResource asks a leaf of f's reading, to one of its readers or to all.
func askResource(t testing.TB, n *node, f *frame, use glob.Use) bool {
	t.Helper()
	var list *glob.List
	var err error
	switch n.op {
	case opResourceGlob:
		list, err = glob.Compile(n.texts(), use)
	case opEq, opIn:
		list, err = glob.Exactly(n.texts(), use)
	default:
		return askLeaf(t, n, f)
	}
	if err != nil {
		t.Fatal(err)
	}
	if use == glob.Allows {
		return list.MatchEvery(f.reading, f.readings.Stops())
	}
	i, _ := list.MatchAny(f.reading)
	return i >= 0
}

func askText(t testing.TB, op operator, got, want string) bool {
	t.Helper()
	switch op {
	case opGlob, opResourceGlob, opActionGlob:
		m, err := compileMatcher(op.String(), []string{want}, glob.Blocks)
		if err != nil {
			t.Fatal(err)
		}
		return m.Match(got) >= 0
	case opRegex:
		return regexp.MustCompile(want).MatchString(got)
	case opContains:
		return strings.Contains(got, want)
	case opStartsWith:
		return strings.HasPrefix(got, want)
	case opEndsWith:
		return strings.HasSuffix(got, want)
	}
	return ordered(op, strings.Compare(got, want))
}

func ordered(op operator, c int) bool {
	switch op {
	case opGt:
		return c > 0
	case opGte:
		return c >= 0
	case opLt:
		return c < 0
	case opLte:
		return c <= 0
	}
	return c == 0
}

func compareInt(a, b int64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func timeOf(t testing.TB, s string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, s)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func present(fd field, f *frame) bool {
	in := f.in.Intent
	switch {
	case fd.kind == kindDigits:
		read := fd
		read.kind = kindString
		if !present(read, f) {
			return false
		}
		_, err := strconv.ParseInt(text(fd, f), 10, 64)
		return err == nil
	case fd.keyed:
		_, ok := in.Metadata[fd.key]
		return ok
	case fd.name == metadataField:
		return in.Metadata != nil
	case fd.inCost():
		return in.Cost != nil
	}
	return true
}

func number(fd field, f *frame) int64 {
	if fd.kind == kindDigits {
		n, _ := strconv.ParseInt(text(fd, f), 10, 64) // it is present
		return n
	}
	if fd.name == "policy.version" {
		return f.policy.Version
	}
	return f.in.Intent.Cost.AmountMinor
}

func text(fd field, f *frame) string {
	in := f.in.Intent
	if fd.keyed {
		return in.Metadata[fd.key]
	}
	return map[string]func() string{
		"action_type":            func() string { return in.ActionType },
		"agent_id":               func() string { return in.AgentID },
		"policy_id":              func() string { return in.PolicyID },
		"intent_id":              func() string { return in.IntentID },
		"resource":               func() string { return f.reading.Text },
		"cost.currency":          func() string { return in.Cost.Currency },
		"agent.id":               func() string { return in.AgentID },
		"agent.status":           func() string { return f.in.Agent.String() },
		"policy.policy_id":       func() string { return f.policy.PolicyID },
		"policy.organization_id": func() string { return f.policy.OrganizationID },
		"policy.agent_id":        func() string { return f.policy.AgentID },
		"policy.status":          func() string { return string(f.policy.Status) },
	}[fd.name]()
}
