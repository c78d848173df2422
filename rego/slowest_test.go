package rego

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
	"writ.example/writ/engine/condition/conditiontest"
)

// values are expressions that make a large value v. %[1]d is a number of elements. The compiler cannot
// see it, because it comes from the input.
var values = []string{
	`v := [i | some i in numbers.range(1, n)]`,
	`v := [x | some i in numbers.range(1, n); x := i / 7]`,
	`v := {i | some i in numbers.range(1, n)}`,
	`v := {x | some i in numbers.range(1, n); x := i / 100000}`,
	`v := {x | some i in numbers.range(1, n); x := i * 10000000000000000}`,
	`v := {i: i | some i in numbers.range(1, n)}`,
	`v := {x: [i] | some i in numbers.range(1, n); x := i / 1000}`,
	`v := {format_int(i, 10): {"a": i} | some i in numbers.range(1, n)}`,
	`v := concat("", [x | some i in numbers.range(1, n); x := input.intent.resource])`,
	`v := [x | some i in numbers.range(1, n); x := concat("", [input.intent.resource, format_int(i, 10)])]`,
	`v := {x | some i in numbers.range(1, n); x := concat("", [input.intent.resource, format_int(i, 10)])}`,
	`v := {[a, b, c, d] | some a in numbers.range(1, k); some b in numbers.range(1, k); some c in numbers.range(1, k); some d in numbers.range(1, k)}`,
	`v := {[i, n - i] | some i in numbers.range(1, n)}`,
	`v := {{"a": i, "b": n - i} | some i in numbers.range(1, n)}`,
	`u := numbers.range(1, k * 20); v := [u | some i in numbers.range(1, n)]`,
	`u := numbers.range(1, n); v := {array.concat(u, [i / 100]) | some i in numbers.range(1, k)}`,
	`u := numbers.range(1, n); v := [[u | some i in numbers.range(1, k)] | some j in numbers.range(1, k)]`,
	`a := [1, n]; b := [a, a]; c := [b, b]; d := [c, c]; e := [d, d]; f := [e, e]; v := [f, f]`,
	`v := input.intent.metadata`,
	`v := input`,
	`v := json.unmarshal(concat("", ["[", concat(",", ["[1.5]" | some i in numbers.range(1, n)]), "]"]))`,
	`v := split(concat("/", [input.intent.resource | some i in numbers.range(1, k)]), "/")`,
	`v := made`, `v := partial`, `v := table`,
}

// uses are expressions that read v.
var uses = []string{
	`v == w`, `v != w`, `v < w`, `not v == w`, `not v[_] == w`, `v[_] == w`, `v[_][_] == w`, `v[_][_][_] == w`, `w in v`, `v[i]`, `v[w]`,
	`v[i / 100]`, `v[_] == v[_]`, `some x in v; x == w`, `some x in v; some y in x; y == w`, `some k, x in v; k == x`,
	`x := {y | some y in v}; x == w`, `x := [y | some y in v]; x == w`, `x := {y: i | some y in v}; count(x) < 0`, `x := {v, w}; count(x) < 0`,
	`x := [v, v, w]; y := [v, v, i]; x == y`, `x := {z | some y in v; z := y / 3}; x == w`, `x := v | w; x == v`, `x := v & w; x == v`, `x := v - w; x == v`,
	`x := object.union(v, w); x == v`, `x := array.concat(v, w); x == v`, `x := sort(v); x == w`, `x := count(v); x == w`, `x := json.marshal(v); x == w`,
	`x := sum(v); x == w`, `x := max(v); x == w`, `x := union({v, w}); x == w`, `x := object.get(v, [w], 1); x == w`,
	`x := object.keys(v); x == w`, `x := object.filter(v, w); x == w`, `x := object.remove(v, w); x == w`, `x := object.subset(v, w); x == w`,
	`x := array.reverse(v); x == w`, `x := array.slice(v, 1, i); x == w`, `x := lower(v); x == w`, `x := replace(v, "a", "b"); x == w`, `contains(v, w)`,
	`startswith(v, w)`, `x := indexof(v, w); x == i`, `x := substring(v, i, 5); x == w`, `x := trim(v, "ab"); x == w`,
	`x := split(v, "/"); x == w`, `regex.match("(a|b)*c{20}$", v)`, `x := regex.replace(v, "[ab]+/", "x"); x == w`, `glob.match("a*b", ["/"], v)`, `glob.match("**{aa,bb,a,b}", ["/"], v)`, `glob.match("{a,aa}{a,aa}{?,??}*b", ["/"], v)`, `glob.match("a?*[a-c]?x", [], v)`,
	`time.format([i * 1000000000000, "Europe/Berlin", v]) == w`, `time.diff([i, "Asia/Tokyo"], [n * 1000000000000, "Europe/Berlin"]) == w`, `x := time.parse_duration_ns(v); x == w`,
	`x := object.union_n([v, w, v]); x == w`, `regex.match("[^\\x00-\\x{10ffff}]|(\\pL|[a-z/]){40}$", v)`, `x := regex.find_all_string_submatch_n("(a)?(b)?(.)", v, -1); x == w`,
	`x := product(v); x == w`, `x := round(v[_]); x == w`, `x := {"a": [i, {"b": v, "c": [i, {i, w}]}], "d": {i: {i: v}}}; x == w`, `x := [[y, z, [y]] | some y in v; some z in v]; x == w`,
	`x := array.flatten([v, w, [v]]); x == w`, `x := uri.parse(v); x == w`, `x := strings.split_n(v, "/", i); x == w`, `x := base64.encode(v); x == w`, `x := crypto.md5(v); x == w`,
	`x := strings.reverse(v); x == w`, `x := format_int(v, 2); x == w`, `x := to_number(v); x == w`, `is_array(v)`, `type_name(v) == w`,
	`f(v) == w`, `f(i / 1000) == w`, `f([i, n - i]) == w`, `g(v, w)`, `h(v)`, `every x in v { x != w }`, `every x in v { f(x) != w }`, `every x in v { every y in v { x != y } }`,
	`held with input as v`, `held with input.intent.metadata as v`, `held with input.intent.metadata.k1 as w`, `pairs[v]`, `pairs[i / 10]`, `many(v) == w`,
	`walk(v, [x, y]); x == y`, `[x, y] = v`, `{"a": x, "b": y} = v`, `[v, x] = [w, v]`, `x := numbers.range(1, i); x == v`, `x := i * v; x == w`,
	`x := v[_] * v[_]; x == w`, `data.a.pairs == data.a.partial`, `data.a.table == v`, `data.a.table[i] == w`, `data.a.table[_] == v`, `made == v`, `not made[i / 10]`,
	`x := crypto.sha256(v); x == w`, `x := bits.lsh(n, i); x == w`,
	`x := json.filter(v, ["a/b"]); x == w`, `x := json.remove(v, ["a/b"]); x == w`,
	`x := strings.replace_n({"a": "b", "b": "c"}, v); x == w`, `strings.any_prefix_match(v, w)`,
	`net.cidr_contains(v, w)`, `x := semver.compare(v, w); x == i`, `x := time.parse_ns("2006", v); x == w`,
	`x := sprintf("%s: %v %d%%", [v, w, i]); x == w`, `x := sprintf("%v", [v]); x == i`, `x := sprintf("%d", v); x == w`, `x := $"{v} and {w}"; x == i`, `x := json.marshal([v, {v: w}]); x == w`, `x := json.marshal({{{v: w}: i}: v}); x == w`,
	`object.subset([v, v, v, i], [v, w])`, `object.subset(v, v)`, `object.subset(v, [w])`, `object.subset({"a": v, "b": {"a": v}}, {"a": w, "b": {"a": w}})`, `object.subset([x | some y in v; x := [y, i]], {[w, i]})`,
	`x := net.cidr_contains_matches(v, w); x == w`, `x := net.cidr_contains_matches(["10.0.0.0/8" | some y in v], ["10.1.0.0/16" | some y in v]); x == w`, `x := net.cidr_contains_matches({y: "10.0.0.0/8" | some y in v}, {y: "10.1.2.3" | some y in v}); x == w`,
	`x := base64url.encode(v); x == w`, `x := urlquery.encode(v); x == w`, `x := hex.encode(v); x == w`, `x := intersection({v, w}); x == w`,
}

// references are values of w, which v is compared with.
var references = []string{`w := v`, `w := 1.5`, `w := "a"`, `w := [v]`, `w := {1.5, 2.5}`, `w := [i, v]`, `w := input.intent.metadata`, `w := [x | some x in v]`, `w := {x | some x in v}`, `w := input.intent.resource`}

// helpers are the rules of each module.
const helpers = `package a

n := to_number(input.intent.metadata.n)

k := to_number(input.intent.metadata.k)

made := [x | some i in numbers.range(1, n); x := i / 3]

partial contains i / 1000 if some i in numbers.range(1, n)

table[i / 1000] := [i] if some i in numbers.range(1, n)

pairs contains [i, n - i] if some i in numbers.range(1, n)

same(x) := x

f(x) := [x]

g(x, y) if x == y

g(x, y) if x != y

h([x, y]) if x == y

h({"a": x}) if x == 1

many(x) := 1 if x == [1]

many(x) := 2 if x == [2]

many(x) := 3 if glob.match("a*b", ["/"], x)

held if input.intent.metadata.env == "prod"

match if {
	%s
	some i in numbers.range(1, to_number(input.intent.metadata.m))
	%s
	%s
}
`

// slowInput is an intent of the greatest size with the numbers that values and uses read.
func slowInput(n, k, m int, work *condition.Work) *engine.RegoInput {
	in := hostileInput(work)
	in.Intent.Metadata["n"], in.Intent.Metadata["k"], in.Intent.Metadata["m"] = strconv.Itoa(n), strconv.Itoa(k), strconv.Itoa(m)
	delete(in.Intent.Metadata, "k0")
	delete(in.Intent.Metadata, "k1")
	return in
}

// TestDecision_Bounds_NoConditionIsSlow checks "counted in steps, calls and the bytes that are read,
// made and compared". It tries random conditions that make large values and read them. Each must end:
// decided, or because it did too much. `make soak` searches for the slowest one, which no condition
// within the budget may be: it must not take more than
// [conditiontest.Slowest] of the processor.
func TestDecision_Bounds_NoConditionIsSlow(t *testing.T) {
	until, tries := time.Now().Add(time.Hour), 150
	if s := os.Getenv("WRIT_SOAK"); s != "" {
		until, tries = time.Now().Add(2*time.Minute), 1<<30
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	one := func(from []string) string { return from[rng.IntN(len(from))] }
	sizes := []int{3, 20, 100, 300, 1000, 3000, 10_000, 60_000}
	compiled, worst := 0, time.Duration(0)
	for tried := 0; tried < tries && time.Now().Before(until); tried++ {
		value, other := one(values), one(references)
		if rng.IntN(2) == 0 { // values of any type, so that every function takes them
			value = strings.Replace(value, "v := ", "known := ", 1) + "\n\tv := same(known)"
			other = strings.Replace(other, "w := ", "as_known := ", 1) + "\n\tw := same(as_known)"
		}
		source := fmt.Sprintf(helpers, value, other, one(uses))
		c, err := CompileCondition(source)
		if err != nil {
			continue
		}
		compiled++
		for range 3 {
			n, k, m := sizes[rng.IntN(len(sizes))], sizes[rng.IntN(3)], sizes[rng.IntN(len(sizes))]
			var work condition.Work
			var err error
			in := slowInput(n, k, m, &work)
			took := conditiontest.LeastSpent(t, func() {
				work = condition.Work{}
				_, err = c.Match(in)
			})
			if errors.Is(err, condition.ErrTooMuchWork) != (work.Left() == 0) {
				t.Errorf("Match = %v with %d steps left", err, work.Left())
			}
			if took <= worst {
				continue
			}
			worst = took
			_, body, _ := strings.Cut(source, "match if {")
			t.Logf("%v, %d steps left, n=%d k=%d m=%d, %v: %s", took, work.Left(), n, k, m, err, body)
			if took > conditiontest.Slowest && os.Getenv("WRIT_SOAK") != "" {
				t.Errorf("a condition took %v of the processor, want at most %v", took, conditiontest.Slowest)
			}
		}
	}
	if compiled < min(tries, 1000)/10 {
		t.Errorf("%d conditions compiled: too few to tell anything", compiled)
	}
}
