package api

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
)

var plainSeeds = []string{
	`{"policy_id":"p","intent":{"intent_id":"i","policy_id":"p","agent_id":"a","action_type":"t","resource":"r","issued_at":"x"}}`,
	` { "intent" : { "cost" : { "currency" : "EUR" , "amount_minor" : -0 } , "metadata" : { } } , "policy_id" : "" } `,
	`{"policy_id":"é","intent":{"metadata":{"a":"b","c":"null"},"cost":{"amount_minor":123456789012345,"currency":"X"}}}`,
	"{\"policy_id\":\"\xff\",\"intent\":{}}",
	`{"policy_id":"\u0041","intent":{}}`,
	`{"policy_id":"a","policy_id":"b","intent":{}}`,
	`{"policy_id":"a","intent":{"metadata":{"k":"1","k":"2"}}}`,
	`{"policy_id":"a","intent":{"cost":{"amount_minor":1}}}`,
	`{"policy_id":"a","intent":{"cost":{"amount_minor":1.0,"currency":"EUR"}}}`,
	`{"policy_id":"a","intent":{"cost":{"amount_minor":01,"currency":"EUR"}}}`,
	`{"policy_id":"a","intent":{"cost":{"amount_minor":1234567890123456,"currency":"EUR"}}}`,
	`{"policy_id":"a","intent":null}`, `{"policy_id":"a","intent":{},}`, `{}`, `{"policy_id":"a","intent":{}}x`,
	`{"Policy_id":"a","intent":{}}`, `{"intent":{},"x":1}`, `{"intent":{"metadata":{"":""}}}`, `[]`, ``,
}

func FuzzDecodeEvaluate(f *testing.F) {
	for _, seed := range plainSeeds {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		var fast, strict evaluateBody
		if !decodePlain(body, &fast) {
			return
		}
		if err := engine.Decode([]byte(body), "", &strict); err != nil {
			t.Fatalf("decodePlain(%q) accepts what Decode refuses: %v", body, err)
		}
		if diff := cmp.Diff([]any{strict.PolicyID, strict.Intent}, []any{fast.PolicyID, fast.Intent}, cmpopts.IgnoreUnexported(engine.Intent{})); diff != "" {
			t.Fatalf("decodePlain(%q) differs from Decode (-want +got):\n%s", body, diff)
		}
	})
}

func FuzzDecodeBatch(f *testing.F) {
	for _, seed := range plainSeeds {
		f.Add(`{"mode":"each","intents":[` + seed + `]}`)
		f.Add(`{"session_id":"s","policy_id":"p","intents":[{"intent_id":"i"},` + strings.TrimSuffix(strings.TrimPrefix(seed, `{"policy_id":"a","intent":`), "}") + `],"mode":"all"}`)
	}
	for _, seed := range []string{`{"intents":[]}`, `{"intents":[{},]}`, `{"intents":[{}{}]}`, `{"intents":[[]]}`, `{"intents":[],"intents":[]}`, `{"mode":"\u0061"}`, `{"approvals":{}}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		var fast, strict batchBody
		if !decodePlainBatch(body, &fast) {
			return
		}
		if err := engine.Decode([]byte(body), "", &strict); err != nil {
			t.Fatalf("decodePlainBatch(%q) accepts what Decode refuses: %v", body, err)
		}
		want, got := []any{strict.PolicyID, strict.SessionID, strict.Mode}, []any{fast.PolicyID, fast.SessionID, fast.Mode}
		for _, raw := range strict.Intents {
			var in engine.Intent
			if err := engine.Decode(raw, "", &in); err != nil {
				t.Fatalf("decodePlainBatch(%q) accepts an intent that Decode refuses: %v", body, err)
			}
			want = append(want, in)
		}
		for _, in := range fast.plain {
			got = append(got, *in.Intent)
		}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(engine.Intent{})); diff != "" {
			t.Fatalf("decodePlainBatch(%q) differs from Decode (-want +got):\n%s", body, diff)
		}
	})
}

func TestDecodeEvaluate_PlainBodiesTakeTheFastPath(t *testing.T) {
	body, err := json.Marshal(intent(obj{"cost": obj{"amount_minor": 1, "currency": "EUR"}, "metadata": obj{"a": "é"}}))
	must(t, err)
	if !decodePlain(string(body), new(evaluateBody)) {
		t.Errorf("decodePlain(%s) = false, want true", body)
	}
	// The allowed allocations are the body, the struct, the policy id, the agent id and the map.
	var s Server
	r := &request{body: body}
	if n := testing.AllocsPerRun(100, func() { _ = s.decodeEvaluate(r, new(evaluateBody)) }); n > 6 { // checked above
		t.Errorf("decodeEvaluate allocates %v times, want at most 6", n)
	}
}

func TestDecodeBatch_PlainBodiesTakeTheFastPath(t *testing.T) {
	one := `{"intent_id":"i","metadata":{"a":"b"}}`
	batch := func(n int, after string) string {
		return `{"mode":"each","intents":[` + strings.TrimSuffix(strings.Repeat(one+",", n), ",") + "]" + after + "}"
	}
	for name, tt := range map[string]struct {
		body  string
		plain bool
	}{
		"as many as there may be":      {batch(maxBatch, ""), true},
		"one more":                     {batch(maxBatch+1, ""), false},
		"none":                         {batch(0, ""), false},
		"more space than they explain": {batch(2, strings.Repeat(" ", 2*condition.MaxText)), false},
		"approvals":                    {batch(2, `,"approvals":{}`), false},
		"an escape":                    {batch(2, `,"policy_id":"\u0041"`), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := decodePlainBatch(tt.body, new(batchBody)); got != tt.plain {
				t.Errorf("decodePlainBatch = %t, want %t", got, tt.plain)
			}
			var in batchBody
			if err := decodeBatch(&request{body: []byte(tt.body)}, &in); err != nil || in.size() != strings.Count(tt.body, one) {
				t.Errorf("decodeBatch = %v, %d intents, want %d", err, in.size(), strings.Count(tt.body, one))
			}
		})
	}
}

func TestDecodeEvaluate_OddBodiesAreReadAllTheSame(t *testing.T) {
	for name, body := range map[string]string{
		"escapes":     `{"policy_id":"\u0041","intent":{"resource":"a\/b"}}`,
		"large":       `{"policy_id":"A","intent":{"resource":"a/b"}}` + strings.Repeat(" ", condition.MaxText),
		"half-plain":  `{"policy_id":"A","intent":{"cost":{"amount_minor":1,"currency":"EUR"},"resource":"a\u002fb"}}`,
		"plain":       `{"policy_id":"A","intent":{"resource":"a/b"}}`,
		"other order": `{"intent":{"resource":"a/b"},"policy_id":"A"}`,
	} {
		t.Run(name, func(t *testing.T) {
			var in evaluateBody
			if err := new(Server).decodeEvaluate(&request{body: []byte(body)}, &in); err != nil || in.PolicyID != "A" || in.Intent.Resource != "a/b" {
				t.Errorf("decodeEvaluate(%.80s) = %v, %+v, want A and a/b", body, err, in.Intent)
			}
		})
	}
}

func BenchmarkDecodeEvaluate(b *testing.B) {
	body := newBenchBody(b).bytes
	var s Server
	for name, decode := range map[string]func([]byte, *evaluateBody) error{
		"plain":  func(data []byte, in *evaluateBody) error { return s.decodeEvaluate(&request{body: data}, in) },
		"strict": func(data []byte, in *evaluateBody) error { return engine.Decode(data, "", in) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := decode(body, new(evaluateBody)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
