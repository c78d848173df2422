package rego

import (
	"errors"
	"math/bits"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// Functions that write values as texts, and functions that compare each part of one value with the
// parts of another one. OPA does not ask the budget while they run, so their price is the most that
// they can do.

// formatProblem returns why the format of a call of sprintf cannot be used, or "". A width would make a
// long text out of a short value, and an index would write one value many times.
func formatProblem(format *ast.Term) string {
	s, ok := format.Value.(ast.String)
	if !ok {
		return "the format must be a constant, or it could name any width: use concat"
	}
	for rest := string(s); ; {
		_, verb, found := strings.Cut(rest, "%")
		switch {
		case !found:
			return ""
		case verb == "":
			return "the format ends in %: a percent sign is written %%"
		case strings.IndexByte("sdv%", verb[0]) < 0:
			return "the format has a verb other than %s, %d, %v and %%, or a width: use format_int or concat"
		}
		rest = verb[1:]
	}
}

// writing bounds the bytes of v as JSON, and as Rego. An object whose key is no text is written into
// a text, which the object around it writes into a text again. Each time a quote becomes longer.
// It stops counting soon after the bytes exceed most.
func writing(v ast.Value, most int) int {
	const (
		sign   = 6 // the most bytes of a character: \u0000
		around = 7 // an empty set, a comma and a space
	)
	total := around
	if total > most {
		return total
	}
	more := func(t *ast.Term) bool {
		total += writing(t.Value, most-total)
		return total > most
	}
	switch v := v.(type) {
	case ast.String:
		return total + sign*len(v)
	case ast.Number:
		return total + len(v)
	case *ast.Array:
		v.Until(more)
	case ast.Set:
		v.Until(more)
	case ast.Object:
		v.Until(func(k, v *ast.Term) bool {
			key := writing(k.Value, most-total)
			if _, text := k.Value.(ast.String); !text {
				key = sign * min(key, most) // more than most would overflow after some levels
			}
			total += key
			return total > most || more(v)
		})
	default:
		return total + len("false")
	}
	return total
}

// sorting returns how many times longer it takes to sort what is in a value of the size total than to
// read it.
func sorting(total int) int { return 1 + bits.Len(uint(total/termBytes))/4 }

// subsetting bounds the price of object.subset. It compares each part of sub with the parts of super
// that stand at the same place. In lists they can stand at every place, and keys of one hash are
// compared one by one. An object in an object is compared once for each object around it.
func subsetting(super, sub ast.Value, most int) int {
	each := reading(sub, most)
	times := 1 + depth(sub) + longest(super)
	if each > most/times {
		return most + 1
	}
	return each * times
}

// depth returns how many lists, sets and objects stand around the innermost value of v.
func depth(v ast.Value) int {
	most := 0
	within(v, func(_, v ast.Value) { most = max(most, 1+depth(v)) })
	return most
}

// longest returns the most elements of a list in v, or keys of a set or an object that can have one
// hash, as steps for each step of reading the other value.
func longest(v ast.Value) int {
	var found keys
	most := 0
	within(v, func(k, v ast.Value) {
		if k != nil {
			found.compared(k)
		}
		most = max(most, longest(v))
	})
	if a, ok := v.(*ast.Array); ok {
		return max(most, a.Len())
	}
	return max(most, found.colliding*(1+stepsPerProbe/stepsPerTerm))
}

// within calls f with each element of v. k is the key of an object or a set.
func within(v ast.Value, f func(k, v ast.Value)) {
	switch v := v.(type) {
	case *ast.Array:
		v.Foreach(func(t *ast.Term) { f(nil, t.Value) })
	case ast.Set:
		v.Foreach(func(t *ast.Term) { f(t.Value, t.Value) })
	case ast.Object:
		v.Foreach(func(k, v *ast.Term) { f(k.Value, v.Value) })
	}
}

// stepsPerContained is the price of comparing a network with another one, which OPA parses each time.
const stepsPerContained = 128

// containsMatches is OPA's net.cidr_contains_matches. It charges for each pair before it is compared,
// and for each pair that it returns.
func containsMatches(bctx topdown.BuiltinContext, args []*ast.Term, iter func(*ast.Term) error) error {
	b, ok := bctx.Cancel.(*budget)
	if !ok {
		return tooMuch() // cannot happen: prepared.ask sets the budget
	}
	contains, found := topdown.GetBuiltin(ast.NetCIDRContains.Name), ast.NewSet()
	var in keys
	err := networks(args[0], func(one, index1 *ast.Term) error {
		return networks(args[1], func(other, index2 *ast.Term) error {
			if !b.charge(stepsPerContained + size(one.Value, b.left()) + size(other.Value, b.left())) {
				return tooMuch()
			}
			return contains(bctx, []*ast.Term{one, other}, func(held *ast.Term) error {
				if held.Value.Compare(ast.Boolean(true)) != 0 {
					return nil
				}
				pair := ast.ArrayTerm(index1, index2)
				if n := in.compared(pair.Value); n > 0 && !b.charge(n*(stepsPerProbe+reading(pair.Value, b.left()/n))) {
					return tooMuch()
				}
				found.Add(pair)
				return nil
			})
		})
	})
	if err != nil {
		return err
	}
	return iter(ast.NewTerm(found))
}

// errNetwork is the error of a call with something that is no network.
var errNetwork = errors.New(ast.NetCIDRContainsMatches.Name + ": want a network, or a list that begins with one")

// networks calls f with each network of an argument, and with the term that stands for it in the result.
func networks(t *ast.Term, f func(network, index *ast.Term) error) error {
	network := func(t, index *ast.Term) error {
		if list, ok := t.Value.(*ast.Array); ok && list.Len() > 0 {
			return f(list.Elem(0), index)
		}
		if _, ok := t.Value.(ast.String); !ok {
			return errNetwork
		}
		return f(t, index)
	}
	switch v := t.Value.(type) {
	case ast.String:
		return f(t, t)
	case *ast.Array:
		for i := range v.Len() {
			if err := network(v.Elem(i), ast.InternedTerm(i)); err != nil {
				return err
			}
		}
	case ast.Set:
		return v.Iter(func(t *ast.Term) error { return network(t, t) })
	case ast.Object:
		return v.Iter(func(k, v *ast.Term) error { return network(v, k) })
	}
	return nil
}
