package condition

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"writ.example/writ/engine/condition/conditiontest"
	"writ.example/writ/engine/glob"
	"writ.example/writ/engine/resource"
)

// askTree evaluates a tree without CEL. Its result is the meaning of the tree, which both
// renderings must have.
func askTree(t testing.TB, n *Node, f *Frame) bool {
	t.Helper()
	ask := func(k *Node) bool { return askTree(t, k, f) }
	switch n.Kind {
	case All:
		return !slices.ContainsFunc(n.Kids, func(k *Node) bool { return !ask(k) })
	case Any:
		return slices.ContainsFunc(n.Kids, ask)
	case Not:
		return !ask(n.Kids[0])
	case Leaf:
		return askLeaf(t, n, f)
	}
	t.Fatal("askTree of an opaque node")
	return false
}

func askLeaf(t testing.TB, n *Node, f *Frame) bool {
	t.Helper()
	if n.isResource() && n.Side != 0 {
		return askReadings(t, n, f)
	}
	if n.AsksNames() {
		return slices.ContainsFunc(f.Names().Forms(), func(name string) bool {
			f.texts[Item] = name
			return askTree(t, n.Kids[0], f)
		})
	}
	if n.Op == Exists {
		return present(n.Field, f)
	}
	if !present(n.Field, f) {
		return false
	}
	return slices.ContainsFunc(n.Values, func(c Constant) bool {
		switch n.Field.Kind {
		case Int, Digits:
			return ordered(n.Op, cmp.Compare(number(n.Field, f), c.Num))
		case Decimal:
			got, ok := parseDecimal(text(n.Field, f))
			want, _ := parseDecimal(c.Str)
			return ok && ordered(n.Op, got.compare(want))
		case Time:
			at := f.decidedAt
			if n.Field.ID == IssuedAt {
				at = timeOf(t, f.texts[IssuedAt])
			}
			return ordered(n.Op, at.Compare(timeOf(t, c.Str)))
		}
		return askText(t, n.Op, text(n.Field, f), c.Str)
	})
}

// askReadings evaluates a leaf for each reading.
func askReadings(t testing.TB, n *Node, f *Frame) bool {
	t.Helper()
	one := *n
	one.Side = 0
	defer f.SetReading(f.reading)
	for i := range f.readings.Len(n.Side) {
		f.SetReading(f.readings.At(n.Side, i))
		if got := askResource(t, &one, f, n.Side); got == (n.Side == resource.ForBlock) {
			return got
		}
	}
	return n.Side == resource.ForAllow
}

// askResource evaluates a leaf for f's reading. For a block one of its readers must match, for an
// allowance all of them.
func askResource(t testing.TB, n *Node, f *Frame, side resource.Side) bool {
	t.Helper()
	var list *glob.List
	var err error
	switch n.Op {
	case ResourceGlob:
		list, err = glob.Compile(n.Texts(), side)
	case Eq, In:
		list, err = glob.Exactly(n.Texts(), side)
	default:
		return askLeaf(t, n, f)
	}
	if err != nil {
		t.Fatal(err)
	}
	return list.HoldsOf(f.reading, f.readings.Stops())
}

func askText(t testing.TB, op Operator, got, want string) bool {
	t.Helper()
	switch op {
	case Glob, ResourceGlob, ActionGlob:
		m, err := compileMatcher(op, []string{want}, resource.ForBlock)
		if err != nil {
			t.Fatal(err)
		}
		return m.Match(got) >= 0
	case Regex:
		return regexp.MustCompile(want).MatchString(got)
	case InNames:
		return slices.ContainsFunc(conditiontest.Lists()[want], func(s string) bool { return s == got || FoldID(s) == got })
	case InList:
		return slices.Contains(conditiontest.Lists()[want], got)
	case Contains:
		return strings.Contains(got, want)
	case StartsWith:
		return strings.HasPrefix(got, want)
	case EndsWith:
		return strings.HasSuffix(got, want)
	}
	return ordered(op, strings.Compare(got, want))
}

func ordered(op Operator, c int) bool {
	switch op {
	case Gt:
		return c > 0
	case Gte:
		return c >= 0
	case Lt:
		return c < 0
	case Lte:
		return c <= 0
	}
	return c == 0
}

func timeOf(t testing.TB, s string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, s)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func present(fd Field, f *Frame) bool {
	switch {
	case fd.Kind == Digits:
		_, err := strconv.ParseInt(text(fd, f), 10, 64)
		return err == nil && present(fd.as(Text), f)
	case fd.ID == MetadataValue:
		_, ok := f.metadata[fd.Key]
		return ok
	}
	return !f.absent[fd.ID]
}

func number(fd Field, f *Frame) int64 {
	if fd.Kind == Digits {
		n, _ := strconv.ParseInt(text(fd, f), 10, 64) // the field is present
		return n
	}
	return f.numbers[fd.ID]
}

func text(fd Field, f *Frame) string {
	switch fd.ID {
	case MetadataValue:
		return f.metadata[fd.Key]
	case Resource:
		return f.reading.Text
	}
	return f.texts[fd.ID]
}
