package document

import (
	"reflect"
	"slices"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"writ.example/writ/engine"
)

// suiteMembers has the members of suite.File, because this package cannot import package suite. A
// test of package suite checks that they are equal.
var suiteMembers = []string{"suite", "tests", "intents", "policy", "policies", "rules", "lists", "libraries", "now"}

// members returns the members that a document of each kind can have.
var members = sync.OnceValue(func() map[Kind][]string {
	return map[Kind][]string{
		Policy: engine.MemberNames(reflect.TypeFor[engine.ActionPolicy]()),
		Rule:   engine.MemberNames(reflect.TypeFor[engine.Rule]()),
		List:   engine.MemberNames(reflect.TypeFor[engine.List]()),
		Intent: engine.MemberNames(reflect.TypeFor[engine.Intent]()),
		Suite:  suiteMembers,
	}
})

// kindOf returns the kind that has the most of an object's members, or "" on a tie. All members of
// a list except values also belong to other kinds. So List loses a tie. There is one exception:
// List wins a tie with Rule if the object has an array, because a rule has none.
func kindOf(n *node) Kind {
	best, most := Kind(""), 0
	for kind := range members() {
		count := n.has(kind)
		switch {
		case kind == List:
		case count > most:
			best, most = kind, count
		case count == most:
			best = ""
		}
	}
	array := slices.ContainsFunc(n.kids, func(kid *node) bool { return kid.kind == '[' })
	if lists := n.has(List); lists > most || lists == most && best == Rule && array {
		return List
	}
	return best
}

// has counts the members of an object that belong to kind.
func (n *node) has(kind Kind) (count int) {
	for _, k := range n.keys {
		if slices.Contains(members()[kind], k.name) {
			count++
		}
	}
	return count
}

// a returns the kind with its article, such as "an intent".
func (k Kind) a() string {
	if k == Intent {
		return "an intent"
	}
	return "a " + string(k)
}

// wire returns the wire form of d. It returns an error if d is not of kind k.
func (d *Document) wire(k Kind) (jsontext.Value, error) {
	switch {
	case d.root.kind != '{':
		return nil, d.file.refuse(d.root.at, "want an object: a policy, a rule, a list, an intent or a suite")
	case d.Kind == "":
		return nil, d.file.refuse(
			d.root.at, "is neither a policy (allowed_action_types), a rule (condition), a list (values or data), "+
				"an intent (intent_id) nor a suite (tests)",
		)
	case d.Kind != k:
		return nil, d.file.refuse(d.root.at, "is %s: want %s", d.Kind.a(), k.a())
	case k == Rule:
		return d.inlined().wireRule().json(), nil
	}
	return d.inlined().json(), nil
}

// wireRule returns a rule whose condition and action are strings that hold JSON.
func (n *node) wireRule() *node {
	return n.withKids(func(i int, kid *node) *node {
		if name := n.keys[i].name; name != "condition" && name != "action" || kid.kind == '"' || kid.kind == 'n' {
			return kid
		}
		return &node{kind: '"', text: string(kid.json()), at: kid.at}
	})
}
