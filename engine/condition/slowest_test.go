package condition

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"writ.example/writ/engine/condition/conditiontest"
	"writ.example/writ/engine/resource"
)

// attacker writes conditions that take as long as they may.
type attacker struct{ *rand.Rand }

func (g attacker) one(of ...string) string { return of[g.IntN(len(of))] }

// often returns s n times, where n is at most most.
func (g attacker) often(s string, most int) string { return strings.Repeat(s, 1+g.IntN(most)) }

// listOf returns at most most of the texts that next makes, between commas.
func (g attacker) listOf(most int, next func() string) string {
	all := make([]string, 1+g.IntN(most))
	for i := range all {
		all[i] = next()
	}
	return strings.Join(all, ",")
}

// regex returns a regular expression: some are slow for each character, others have large classes.
func (g attacker) regex() string {
	n := 1 + g.IntN(250)
	return fmt.Sprintf(g.one(`(.*.*[ab]){1,%d}z$`, `([^\x00-\x08z]|\pL){%d}z`, `(?i)(\pL|[a-z/@]){%d}$`, `^(a|b|ab|ba){1,%d}z`, `(a?){%[1]d}(a){%[1]d}z`,
		`(?:a*)*b{%d}`, `(\w+\W*){%d}z`, `(?s).*(a|@).{%d}z`, `(é|[^a]|.*.*){1,%d}z`, `^[a-z@.,/]{1,%d}$`, `\b.*\b.{%d}z$`, `(.*)(.*)(.*)z{%d}`), min(n, 900))
}

// glob returns a glob without a quote.
func (g attacker) glob() string {
	return g.one("**", "", "*", "a") + g.often(g.one("a*", "{a,aa}", "?", "*/", "**/a/", "a@*.b", "[a-z]*", "{a,b}*@x."), 12) + g.one("z", "*", "**", "")
}

func (g attacker) text() string {
	return g.one("a", "zz", "a@b.example", "1.5", strings.Repeat("9", 40), strings.Repeat("a", 200), "aaaaaaaaab", "/", "a/b", "")
}

// field returns a text of the intent in CEL.
func (g attacker) field() string {
	return "intent." + g.one("metadata.a", "metadata.b", "metadata.c", "metadata.d", "metadata.e", "metadata.f", "metadata.g", "resource", "agent_id", "metadata.n")
}

// operand returns a text in CEL. vars are the variables of the macros around it.
func (g attacker) operand(vars []string) string {
	switch n := g.IntN(10); {
	case n < 5 && len(vars) > 0:
		return g.one(vars...)
	case n < 6 && len(vars) > 0:
		v := g.one(vars...)
		return g.one("("+v+" + "+g.one(vars...)+")", v+".lowerAscii()", v+".reverse()", v+`.replace("a", "bb")`, "intent.metadata["+v+"]", v+".trim()",
			"string("+v+".size())", v+".substring(1)")
	case n < 9:
		return g.field()
	}
	return Quote(g.text())
}

// list returns a list or a map of texts in CEL.
func (g attacker) list(vars []string) string {
	of := g.operand(vars)
	return g.one("intent.metadata", "items("+of+")", of+`.split(",")`, of+`.split("")`, of+`.split("a")`, of+`.split("/", 50)`,
		"["+g.listOf(100, func() string { return Quote(g.text()) })+"]", "["+g.listOf(30, g.field)+"]")
}

// cel returns a condition in CEL.
func (g attacker) cel(depth int, vars []string) string {
	if depth > 0 && g.IntN(4) > 0 {
		v := string(rune('p' + len(vars)))
		body := g.cel(depth-1, append(vars[:len(vars):len(vars)], v))
		switch list := g.list(vars); g.IntN(6) {
		case 0:
			return "size(" + list + ".map(" + v + ", " + g.operand([]string{v}) + ")) > 100000"
		case 1:
			return "size(" + list + ".filter(" + v + ", " + body + ")) > 100000"
		default:
			return g.one("!", "") + list + "." + g.one("exists", "all", "exists_one") + "(" + v + ", " + body + ")"
		}
	}
	if depth > 0 {
		parts := []string{g.cel(depth-1, vars)}
		for range g.pick(1, 1, 1, 100) {
			parts = append(parts, g.cel(0, vars))
		}
		return "(" + strings.Join(parts, g.one(" && ", " || ")) + ")"
	}
	call := g.one("%[1]s == %[2]s", "%[1]s != %[2]s", "%[1]s < %[2]s", "%[1]s.contains(%[2]s)", "%[1]s.startsWith(%[2]s)", "%[1]s.endsWith(%[2]s)",
		"decimal_compare(%[1]s, %[2]s) == 0", "%[1]s.matches(%[3]s)", "%[1]s.matches(%[3]s)", "glob(%[4]s, %[1]s)", "glob([%[4]s, %[5]s], %[1]s)",
		"resource_glob(%[4]s, %[1]s)", "action_glob(%[4]s, %[1]s)", "%[1]s in items(%[2]s)", "%[1]s in %[2]s.split(',')", "%[1]s in intent.metadata", "%[1]s in list('l')",
		"%[1]s.indexOf(%[2]s) == 5", "int(%[1]s) == 5", "double(%[1]s) == 5.0", "size(bytes(%[1]s)) == 5", "timestamp(%[1]s) == decided_at", "duration(%[1]s) == duration('1h')",
		"decided_at.getHours('Europe/Berlin') == 77", "decided_at.getDayOfWeek('Asia/Tokyo') == size(%[1]s)", "size(%[1]s) == 5", "(%[1]s == 'a' ? %[2]s == 'b' : %[2]s == 'c')")
	return strings.NewReplacer("%[1]s", g.operand(vars), "%[2]s", g.operand(vars), "%[3]s", Quote(g.regex()), "%[4]s", Quote(g.glob()), "%[5]s", Quote(g.glob())).Replace(call)
}

// leaf returns the part of a match object that compares a text.
func (g attacker) leaf(depth int) string {
	texts := func() string { return Quote(g.text()) }
	switch n := g.IntN(14); {
	case n < 4 && depth > 0:
		return "{" + Quote(g.one("$every", "$some", "$not")) + ":" + g.leaf(depth-1) + "}"
	case n < 6:
		return `{"$regex":` + Quote(g.regex()) + "}"
	case n < 9:
		return `{"$glob":[` + g.listOf(g.pick(1, 60), func() string { return Quote(g.glob()) }) + "]}"
	case n < 11:
		return "{" + Quote(g.one("$in", "$nin")) + ":[" + g.listOf(g.pick(2, 2, 400), texts) + "]}"
	case n == 11:
		return `{"$size":{"$gt":100000}}`
	case n == 12:
		return `{"$gt":` + strings.Repeat("9", 15) + "}"
	}
	return "{" + Quote(g.one("$eq", "$ne")) + ":" + Quote(g.text()) + "}"
}

// tree returns a condition that is a match object or a tree.
func (g attacker) tree() string {
	one := strings.TrimPrefix(g.field(), "intent.")
	field := func() string { return strings.TrimPrefix(g.field(), "intent.") }
	leaf := func() string { return "{" + Quote(field()) + ":" + g.leaf(2) + "}" }
	if g.IntN(3) == 0 { // the same leaf many times
		same := "{" + Quote(one) + ":" + g.leaf(2) + "}"
		leaf = func() string { return same }
	}
	if g.IntN(3) == 0 {
		leaf = func() string {
			return `{"field":` + Quote(field()) + `,"op":` + Quote(g.one("eq", "ne", "contains", "doesNotContain", "startsWith", "endsWith")) + `,"value":` + Quote(g.text()) + "}"
		}
		return "{" + Quote(g.one("all", "any")) + ":[" + g.listOf(300, leaf) + "]}"
	}
	return "{" + Quote(g.one("$and", "$or", "$nor")) + ":[" + g.listOf(g.pick(1, 3, 300), leaf) + "]}"
}

func (g attacker) pick(of ...int) int { return of[g.IntN(len(of))] }

// frame returns an intent of the greatest size. Its values are long, or have many elements or addresses.
func (g attacker) frame(t *testing.T) *Frame {
	long := func(s string) string { return strings.Repeat(s, MaxText/len(s)) }
	return testFrame(t, intentWith(func(in *intent) {
		in.Resource = g.one(long("ab/"), "https://h.example/"+strings.Repeat("a", 1000)+"/./#"+strings.Repeat("b", 3000), "https://h.example/"+strings.Repeat("a%2fb", 600), "a")
		in.Metadata = map[string]string{"n": strings.Repeat("9", 40), "a": long("ab"), "b": long("a,"), "c": long("a@b.example,"), "d": long("/"),
			"e": g.one(long(`"a" <a@b.example>;`), long(`<a@b.example> (c@d.example) "e@f.example" `), "["+strings.TrimSuffix(strings.Repeat(`"a@b",`, 680), ",")+"]", long("mailto:a@b?cc=c@d,"), long("a@")),
			"f": g.one(long("é"), long("1,"), strings.TrimSuffix(strings.Repeat("[1],", 1000), ","), long("\n"), long("a b;")), "g": long(g.one("a", "9", "a@b ", "(", `"`, ";"))}
		for i := range MaxMetadataKeys - len(in.Metadata) {
			in.Metadata[fmt.Sprint("k", i)] = g.one("v", "1.5", strings.Repeat("v", 100))
		}
	}))
}

// mostRules is the number of rules that the greatest plan allows.
const mostRules = 10_000

// TestDecision_Bounds_NoConditionIsSlow checks "all conditions of one evaluation share a step budget".
// It tries random conditions of an attacker. Each is a rule as often as a plan allows. Rules with the
// same condition take the same number of steps in each run. `make soak` searches for the slowest one.
func TestDecision_Bounds_NoConditionIsSlow(t *testing.T) {
	soak := os.Getenv("WRIT_SOAK") != ""
	until, tries := time.Now().Add(2*time.Minute), 100
	if soak {
		tries = 1 << 30
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	g := attacker{rand.New(rand.NewPCG(seed, 0))}
	compiled, worst := 0, time.Duration(0)
	for tried := 0; tried < tries && (!soak || time.Now().Before(until)); tried++ {
		doc := g.tree()
		if g.IntN(3) > 0 {
			doc = `{"cel":` + Quote(g.cel(1+g.IntN(4), nil)) + "}"
		}
		c, err := Compile(doc, Options{Side: []resource.Side{resource.ForBlock, resource.ForAllow}[g.IntN(2)]})
		if err != nil {
			continue
		}
		compiled++
		f := g.frame(t)
		left, rules := 0, mostRules
		if !soak {
			rules = 3
		}
		run := func() {
			f.Work = Work{}
			for i := 0; i < rules && f.Work.Left() > 0; i++ {
				_, err = c.Program.Eval(f)
			}
			left = f.Work.Left()
		}
		took := conditiontest.LeastSpent(t, run)
		if first := left; left == maxWork || func() bool { run(); return left != first }() {
			t.Errorf("%s left %d steps, then %d: want the same, and fewer than %d", doc, first, left, maxWork)
		}
		if took <= worst {
			continue
		}
		worst = took
		t.Logf("%v, %d steps left, %v: %.1000s", took, left, err, doc)
		if took > conditiontest.Slowest && soak {
			t.Errorf("conditions took %v of the processor, want at most %v", took, conditiontest.Slowest)
		}
	}
	t.Logf("%d conditions compiled", compiled)
	if compiled < min(tries, 1000)/10 {
		t.Errorf("%d conditions compiled: too few to tell anything", compiled)
	}
}
