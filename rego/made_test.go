package rego

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"

	"writ.example/writ/engine/condition"
	"writ.example/writ/internal/must"
)

// someValue makes a random value without variables, of texts that are written with escapes.
func someValue(rng *rand.Rand, depth int) *ast.Term {
	var some []*ast.Term
	for depth > 0 && len(some) < rng.IntN(4) {
		some = append(some, someValue(rng, depth-1))
	}
	switch rng.IntN(6) {
	case 0:
		return ast.ArrayTerm(some...)
	case 1:
		return ast.SetTerm(some...)
	case 2:
		o := ast.NewObject()
		for _, t := range some {
			o.Insert(t, someValue(rng, 0))
		}
		return ast.NewTerm(o)
	case 3:
		return ast.NewTerm(ast.Number([]string{"0", "1.5", "1e30", "123456789012345678901234567890", "-7"}[rng.IntN(5)]))
	case 4:
		return ast.BooleanTerm(rng.IntN(2) == 0)
	}
	return ast.StringTerm(strings.Repeat([]string{"a", "\"", "\x00", "<", "\xff", "é", "\u200b", "\U000e0001", "\\"}[rng.IntN(9)], rng.IntN(5)))
}

// call calls a function as OPA does. It returns the result and the error as texts.
func call(f topdown.BuiltinFunc, args ...*ast.Term) (made *ast.Term, err error) {
	err = f(topdown.BuiltinContext{Cancel: inSteps(new(condition.Work))}, args, func(t *ast.Term) error {
		made = t
		return nil
	})
	return made, err
}

// TestWriting_IsABound compares the bound of a text with the texts that OPA's functions make.
func TestWriting_IsABound(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	nested := 0
	for range 20_000 {
		v := someValue(rng, 4)
		bound := writing(v.Value, 1<<30)
		for name, args := range map[string][]*ast.Term{
			ast.JSONMarshal.Name: {v}, ast.Sprintf.Name: {ast.StringTerm("%v"), ast.ArrayTerm(v)},
			ast.InternalTemplateString.Name: {ast.ArrayTerm(ast.SetTerm(v))},
		} {
			made, err := call(topdown.GetBuiltin(name), args...)
			must.Do(t, err)
			if n := textBytes(made); n > bound {
				t.Fatalf("%s(%v) has %d bytes, more than %d", name, v, n, bound)
			}
		}
		if o, ok := v.Value.(ast.Object); ok && o.Until(func(k, _ *ast.Term) bool { return k.Value.Compare(ast.Number("1e99")) > 0 }) {
			nested++
		}
	}
	if nested < 100 {
		t.Errorf("%d objects had texts or objects for keys, want hundreds", nested)
	}
	if got := writing(ast.MustParseTerm(strings.Repeat("[", 30)+"1"+strings.Repeat("]", 30)).Value, 50); got < 50 || got > 100 {
		t.Errorf("writing stops counting at %d, want a little above 50", got)
	}
}

// TestWriting_QuotesInQuotes checks that the bound grows as a text does whose quotes are quoted.
func TestWriting_QuotesInQuotes(t *testing.T) {
	v := ast.StringTerm(`"`)
	for range 12 {
		v = ast.ObjectTerm(ast.Item(v, ast.InternedTerm(1)))
		made := must.Get(call(topdown.GetBuiltin(ast.JSONMarshal.Name), v))(t)
		if n, bound := textBytes(made), writing(v.Value, 1<<40); n > bound {
			t.Fatalf("the text has %d bytes, more than %d", n, bound)
		}
	}
	if n := textBytes(must.Get(call(topdown.GetBuiltin(ast.JSONMarshal.Name), v))(t)); n < 1<<12 {
		t.Errorf("the text has %d bytes: its quotes are not quoted again, so the bound is too careful", n)
	}
}

// TestContainsMatches_IsOPAs compares the function with OPA's on random networks.
func TestContainsMatches_IsOPAs(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	network := func() *ast.Term {
		texts := []string{"10.0.0.0/8", "10.1.0.0/16", "10.1.2.3", "10.1.2.3/32", "2001:db8::/32", "2001:db8::1", "0.0.0.0/0", "nonsense", "::ffff:10.0.0.0/104"}
		t := ast.StringTerm(texts[rng.IntN(len(texts))])
		switch rng.IntN(8) {
		case 0:
			return ast.ArrayTerm(t, ast.InternedTerm(1))
		case 1:
			return []*ast.Term{ast.ArrayTerm(), ast.InternedTerm(5), ast.ObjectTerm()}[rng.IntN(3)]
		}
		return t
	}
	networks := func() *ast.Term {
		var some []*ast.Term
		for range rng.IntN(4) {
			some = append(some, network())
		}
		switch rng.IntN(5) {
		case 0:
			return ast.SetTerm(some...)
		case 1:
			o := ast.NewObject()
			for i, t := range some {
				o.Insert(ast.StringTerm(fmt.Sprint(i)), t)
			}
			return ast.NewTerm(o)
		case 2:
			return network()
		}
		return ast.ArrayTerm(some...)
	}
	found := 0
	for range 20_000 {
		a, b := networks(), networks()
		want, wantErr := call(topdown.GetBuiltin(ast.NetCIDRContainsMatches.Name), a, b)
		got, err := call(containsMatches, a, b)
		if (err == nil) != (wantErr == nil) || err == nil && !got.Equal(want) {
			t.Fatalf("containsMatches(%v, %v) = %v, %v, want %v, %v as OPA's", a, b, got, err, want, wantErr)
		}
		if err == nil && got.Value.(ast.Set).Len() > 1 {
			found++
		}
	}
	if found < 500 {
		t.Errorf("%d calls found two pairs, want hundreds", found)
	}
}

// TestMade_DecidesAsOPA runs functions that are charged by size through a whole condition.
func TestMade_DecidesAsOPA(t *testing.T) {
	text := must.Get(json.Marshal(sampleInput().Intent.Resource))(t)
	for _, source := range []string{
		`sprintf("%s costs %d%%, %v", ["a", 5, {"b": [1.5]}]) == "a costs 5%, {\"b\": [1.5]}"`,
		`sprintf("%d", [1.5]) == "%!d(float64=1.5)"`,
		`sprintf("%s", []) == "%!s(MISSING)"`,
		`sprintf("%v", [input.intent.resource]) == input.intent.resource`,
		`x := 5; $"{x} of {input.intent.resource}" == concat("", ["5 of ", input.intent.resource])`,
		`$"{input.intent.metadata.absent}" == "<undefined>"`,
		`json.marshal(input.intent.resource) == ` + string(must.Get(json.Marshal(string(text)))(t)),
		`json.marshal({"b": {2, 1}, "a": null}) == "{\"a\":null,\"b\":[1,2]}"`,
		`object.subset({"a": {"b": [1, 2, 3], "c": {4, 5}}}, {"a": {"b": [2, 3], "c": {5}}})`,
		`not object.subset(input.intent.metadata, {"absent": "x"})`,
		`object.subset([1, 2, 3], {3, 1})`,
		`net.cidr_contains_matches(["10.0.0.0/8", "192.168.0.0/16"], {"ten": "10.1.2.3"}) == {[0, "ten"]}`,
		`base64url.encode_no_pad("a?") == "YT8"`,
	} {
		c, err := CompileCondition(source)
		if err != nil {
			t.Errorf("CompileCondition(%s) = %v", source, err)
			continue
		}
		if ok, err := c.Match(sampleInput()); !ok || err != nil {
			t.Errorf("%s = %v, %v, want true", source, ok, err)
		}
	}
}
