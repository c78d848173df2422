package bench

import (
	"net/url"
	"os"
	"strings"
	"testing"

	"writ.example/writ/bench/load"
)

const ownPolicy = "0c0ffee0-0000-4000-8000-000000000001"

// TestReadIntents checks the defaults, the templates and the weights of the file of the examples.
func TestReadIntents(t *testing.T) {
	text, err := os.ReadFile("../examples/bench/payments.jsonl")
	must(t, err)
	all, err := ReadIntents(text, ownPolicy)
	must(t, err)
	if len(all) != 3 || all[0].Weight != 80 || all[1].Want != "approval_required" {
		t.Fatalf("%+v: want 3 intents with their weights and decisions", all)
	}
	in := all[0]
	if in.IntentID != load.IntentID || in.IssuedAt != load.Time || in.PolicyID != ownPolicy ||
		in.Metadata["order"] != "A-1000000001" {
		t.Errorf("%+v: want the placeholders, and the policy's id", in.Intent)
	}
	one, err := ReadIntents([]byte(`{"intent":{"policy_id":"`+ownPolicy+`","agent_id":"a","action_type":"b","resource":"{{ uuid }}"}}`), "")
	must(t, err)
	if one[0].Weight != 1 || one[0].Want != "" || one[0].Resource != load.IntentID {
		t.Errorf("%+v: want the weight 1, any decision and a random resource", one[0])
	}
}

// TestReadIntents_NamesLineAndField checks that each error of a file names the line, the field and what would be right.
func TestReadIntents_NamesLineAndField(t *testing.T) {
	const good = `{"intent":{"agent_id":"a","action_type":"b","resource":"c"}}` + "\n\n"
	for line, want := range map[string]string{
		`{"intent":{"agent_id":"a","action_type":"b"}}`:                               "line 3: intent.resource",
		`{"intent":{"agent_id":"a","action_type":"b","resource":"c","extra":1}}`:      "line 3: intent.extra",
		`{"want":"maybe","intent":{"agent_id":"a","action_type":"b","resource":"c"}}`: `line 3: want: got "maybe", want allow, deny`,
		`{"weight":0,"intent":{"agent_id":"a","action_type":"b","resource":"c"}}`:     "line 3: weight: want a number above 0",
		`{"weight":"x","intent":{"agent_id":"a","action_type":"b","resource":"c"}}`:   "line 3: weight",
		`{"wants":"deny","intent":{"agent_id":"a","action_type":"b","resource":"c"}}`: "line 3: wants",
		`{"want":"deny"}`: "line 3: intent: is required",
		`{"intent":{"agent_id":"a","action_type":"b","resource":"c","metadata":{"k":"{{uid}}"}}}`:  "line 3: intent.metadata.k: {{uid}} is no template: want {{uuid}}",
		`{"intent":{"agent_id":"a","action_type":"b","resource":"c","policy_id":"` + badID + `"}}`: "line 3: intent.policy_id: got " + badID,
		`{"intent":{"agent_id":"a","action_type":"b","resource":"c","issued_at":"yesterday"}}`:     "line 3: intent.issued_at",
		`{"intent":{"agent_id":"a","action_type":"b","resource":"c","cost":{"amount_minor":1}}}`:   "line 3: intent.cost.currency",
		`{"intent":`: "line 3: ",
	} {
		if all, err := ReadIntents([]byte(good+line), ownPolicy); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v, want an error with %q", line, all, err, want)
		}
	}
	if _, err := ReadIntents([]byte("\n"), ownPolicy); err == nil || !strings.Contains(err.Error(), "has no line") {
		t.Errorf("an empty file: %v", err)
	}
}

const badID = "0c0ffee0-0000-4000-8000-000000000002"

// TestWork_Digest checks that the digest of the documents changes with each of them.
func TestWork_Digest(t *testing.T) {
	none, err := Work{}.Digest()
	must(t, err)
	seen := map[string]bool{none: true}
	for _, line := range []string{`"want":"allow",`, `"want":"deny",`, `"weight":2,`} {
		w := Work{}
		w.Mix, err = ReadIntents([]byte(`{`+line+`"intent":{"agent_id":"a","action_type":"b","resource":"c"}}`), ownPolicy)
		must(t, err)
		digest, err := w.Digest()
		must(t, err)
		if seen[digest] || none != "" {
			t.Errorf("%s has the digest %q of other documents", line, digest)
		}
		seen[digest] = true
	}
}

// TestWork_AsksWhatTheFileSays checks the requests about the intents of a file.
func TestWork_AsksWhatTheFileSays(t *testing.T) {
	text, err := os.ReadFile("../examples/bench/payments.jsonl")
	must(t, err)
	w := Work{Organizations: 1}
	w.Mix, err = ReadIntents(text, ownPolicy)
	must(t, err)
	target, err := w.ask(&url.URL{Scheme: "http", Host: "h"}, nil)
	must(t, err)
	if m := target.Messages; len(m) != 3 || m[0].Weight != 80 || m[2].Want != "deny" || !target.Counts ||
		!strings.HasPrefix(string(m[0].Body), `{"intent":{`) {
		t.Errorf("%+v: want a message for each intent, and mismatches counted", target)
	}
}
