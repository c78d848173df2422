package condition

import (
	"slices"
	"strings"
	"testing"

	"writ.example/writ/engine/condition/conditiontest"
	"writ.example/writ/engine/resource"
)

func testLists() Lists {
	lists := Lists{"payees": NewList([]string{"bob", "ana", "bob"})}
	for name, items := range conditiontest.Lists() {
		lists[name] = NewList(items)
	}
	return lists
}

func TestCondition_Lists(t *testing.T) {
	for _, tt := range []struct{ doc, value, want string }{
		{`{"metadata.to":{"$in":{"list":"payees"}}}`, "bob", "true"},
		{`{"metadata.to":{"$in":{"list":"payees"}}}`, "Bob", "false"},
		{`{"metadata.to":{"$nin":{"list":"payees"}}}`, "eve", "true"},
		{`{"metadata.from":{"$in":{"list":"payees"}}}`, "bob", "false"},
		{`{"metadata.from":{"$nin":{"list":"payees"}}}`, "bob", "true"},
		{`{"field":"metadata.to","op":"in","value":{"list":"payees"}}`, "ana", "true"},
		{`{"field":"metadata.to","op":"notIn","value":{"list":"payees"}}`, "ana", "false"},
		{`{"metadata.to":{"$every":{"$in":{"list":"payees"}}}}`, "ana, bob", "true"},
		{`{"metadata.to":{"$every":{"$in":{"list":"payees"}}}}`, "ana, eve", "false"},
		{`{"metadata.to":{"$some":{"$in":{"list":"payees"}}}}`, "eve, bob", "true"},
		{`{"cel":"intent.metadata.to in list('payees')"}`, "bob", "true"},
		{`{"cel":"!(intent.metadata.to in list('payees'))"}`, "eve", "true"},
		{`{"cel":"intent.metadata.from in list('payees')"}`, "bob", "error"},
		{`{"cel":"intent.metadata.to.lowerAscii() in list('payees')"}`, "BOB", "true"},
		{`{"cel":"items(intent.metadata.to).all(p, p in list('payees'))"}`, "ana,bob", "true"},
		{`{"cel":"items(intent.metadata.to).exists(p, p in list('payees'))"}`, "eve", "false"},
		{`{"metadata.to":{"$in":{"list":"gone"}}}`, "bob", "error"},
		{`{"metadata.to":{"$nin":{"list":"gone"}}}`, "bob", "error"},
		{`{"cel":"intent.metadata.to in list('gone')"}`, "bob", "error"},
		{`{"cel":"intent.metadata.to.trim() in list('gone')"}`, "bob", "error"},
	} {
		if got := outcomeOf(t, tt.doc, map[string]string{"to": tt.value}); got != tt.want {
			t.Errorf("%s of %q = %s, want %s", tt.doc, tt.value, got, tt.want)
		}
	}
}

func TestCondition_ListsThatAreNamed(t *testing.T) {
	for doc, want := range map[string][]string{
		`{}`: nil,
		`{"$or":[{"metadata.a":{"$in":{"list":"b"}}},{"agent_id":{"$nin":{"list":"a.1"}}},{"metadata.x":{"$some":{"$in":{"list":"b"}}}}]}`: {"a.1", "b"},
		`{"cel":"intent.agent_id in list('b') || intent.metadata.exists(k, k in list(\"a\"))"}`:                                            {"a", "b"},
		`{"cel":"intent.agent_id in ['list(\"b\")']"}`:                                                                                     nil,
	} {
		if got := mustCondition(t, doc).Lists; !slices.Equal(got, want) {
			t.Errorf("%s names %v, want %v", doc, got, want)
		}
	}
}

func TestCondition_ListsAreRefused(t *testing.T) {
	for _, tt := range []struct{ doc, want string }{
		{`{"metadata.to":{"$in":{"lst":"payees"}}}`, `at /metadata.to/$in: $in wants an array of at least one constant, or a list by its name`},
		{`{"metadata.to":{"$in":{"list":["payees"]}}}`, "a list by its name"},
		{`{"metadata.to":{"$in":{"list":"payees","or":1}}}`, "a list by its name"},
		{`{"metadata.to":{"$in":{"list":"Payees"}}}`, "at /metadata.to/$in/list: the name of a list has 1 to 128 characters"},
		{`{"cost.amount_minor":{"$in":{"list":"payees"}}}`, "a list holds texts, cost.amount_minor is an integer"},
		{`{"resource":{"$in":{"list":"payees"}}}`, "a list holds no resources"},
		{`{"cel":"intent.agent_id in list(intent.metadata.which)"}`, "the name must be a constant"},
		{`{"cel":"intent.agent_id in list('')"}`, "the name of a list has"},
		{`{"cel":"list('payees').exists(p, p == intent.agent_id)"}`, "at /cel"},
		{`{"cel":"size(list('payees')) > 1"}`, "no matching overload"},
		{`{"cel":"1 in list('payees')"}`, "no matching overload"},
		{`{"cel":"list('a') == list('b')"}`, "at most 100000 are allowed"},
		{`{"cel":"intent.agent_id in (true ? list('a') : list('b'))"}`, `only "in" asks a list`},
	} {
		_, err := Compile(tt.doc, Options{Side: resource.ForAllow})
		wantInvalid(t, err, tt.want)
	}
}

func TestCheckListName(t *testing.T) {
	for name, ok := range map[string]bool{
		"payees": true, "a": true, "0.b_c-d": true, strings.Repeat("a", MaxName): true,
		"": false, ".a": false, "-": false, "A": false, "a b": false, "é": false, "a/b": false, strings.Repeat("a", MaxName+1): false,
	} {
		if err := CheckListName(name); (err == nil) != ok {
			t.Errorf("CheckListName(%q) = %v, want ok %v", name, err, ok)
		}
	}
}
