package engine

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const ordinaryBody = `{"policy_id":"7b0c2f6e-3d1a-4c55-9a53-0c1f1a2b3c4d","intent":{` +
	`"intent_id":"123e4567-e89b-12d3-a456-426614174000","policy_id":"7b0c2f6e-3d1a-4c55-9a53-0c1f1a2b3c4d",` +
	`"agent_id":"checkout-bot","action_type":"payment.charge","resource":"https://api.stripe.com/v1/charges/ch_3PqR7sT9uV",` +
	`"cost":{"amount_minor":1250,"currency":"EUR"},"metadata":{"env":"prod","order":"A-1009","team":"checkout"},` +
	`"issued_at":"2026-01-31T09:30:00Z"}}`

// slowly is DecodeEvaluation without its fast path.
func slowly(data []byte) (*Evaluation, error) {
	e := &Evaluation{}
	return e, Decode(data, "", e)
}

// agree fails the test where the one-pass reader takes a body for something
// else than the decoder proper does.
func agree(t *testing.T, data []byte) (fast bool) {
	t.Helper()
	got := &Evaluation{}
	if r := (plainReader{data: data}); !r.evaluation(got) {
		return false
	}
	want, err := slowly(data)
	if err != nil {
		t.Fatalf("the one-pass reader accepts %q, Decode says %v", data, err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("the one-pass reader reads %q differently (-Decode +it):\n%s", data, diff)
	}
	return true
}

func TestDecodeEvaluation_OnePassAgrees(t *testing.T) {
	if !agree(t, []byte(ordinaryBody)) {
		t.Error("an ordinary body is not read in one pass")
	}
	// Every byte in turn replaced by, and followed by, what could change the
	// meaning.
	for i := range len(ordinaryBody) + 1 {
		for _, c := range []string{`"`, `\`, "{", "}", ",", ":", "0", "1", "-", ".", "e", " ", "\x00", "\x7f", "\xff", "é", "null", "[]"} {
			agree(t, []byte(ordinaryBody[:i]+c+ordinaryBody[min(i+1, len(ordinaryBody)):]))
			agree(t, []byte(ordinaryBody[:i]+c+ordinaryBody[i:]))
		}
		agree(t, []byte(ordinaryBody[:i]))
	}
}

func TestDecodeEvaluation(t *testing.T) {
	upper := strings.NewReplacer("7b0c2f6e", "7B0C2F6E", "123e4567", "123E4567")
	tests := []struct {
		name, data, want string
	}{
		{"ordinary", ordinaryBody, ""},
		{"ids in upper case", upper.Replace(ordinaryBody), ""},
		{"escapes", strings.Replace(ordinaryBody, "checkout-bot", `checkout\u002dbot`, 1), ""},
		{"white space", strings.ReplaceAll(ordinaryBody, ",", " ,\n\t"), ""},
		{"empty", `{}`, "invalid: policy_id: is required; intent: is required"},
		{"no policy", `{"intent":{}}`, "invalid: policy_id: is required"},
		{"no intent", `{"policy_id":"x"}`, "invalid: intent: is required"},
		{"null", `{"policy_id":"x","intent":null}`, "invalid: intent: must not be null: leave it out instead"},
		{"duplicate", `{"policy_id":"x","policy_id":"x","intent":{}}`, "invalid: policy_id: is given more than once"},
		{"cost without currency", `{"policy_id":"x","intent":{"cost":{"amount_minor":1}}}`, "invalid: intent.cost.currency: is required"},
		{"leading zero", `{"policy_id":"x","intent":{"cost":{"amount_minor":01,"currency":"EUR"}}}`, "not valid JSON"},
		{"too great an amount", `{"policy_id":"x","intent":{"cost":{"amount_minor":99999999999999999999,"currency":"EUR"}}}`, "intent.cost.amount_minor: want an integer"},
		{"trailing data", ordinaryBody + "x", "not valid JSON"},
	}
	ordinary, err := slowly([]byte(ordinaryBody))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := DecodeEvaluation([]byte(tt.data))
			if tt.want != "" {
				if err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Fatalf("DecodeEvaluation = %v, want an error that says %q", err, tt.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(ordinary, got); diff != "" {
				t.Errorf("DecodeEvaluation (-want +got):\n%s", diff)
			}
		})
	}
}

// Nothing that was decoded refers to the body, which its owner reuses.
func TestDecodeEvaluation_KeepsNothingOfTheBody(t *testing.T) {
	data := []byte(ordinaryBody)
	got, err := DecodeEvaluation(data)
	if err != nil {
		t.Fatal(err)
	}
	for i := range data {
		data[i] = 'x'
	}
	want, err := slowly([]byte(ordinaryBody))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("after the body was overwritten (-want +got):\n%s", diff)
	}
}

func FuzzDecodeEvaluation(f *testing.F) {
	f.Add([]byte(ordinaryBody))
	f.Add([]byte(`{"intent":{"metadata":{"a":"b","a":"c"}},"policy_id":"x"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		agree(t, data)
		if e, err := DecodeEvaluation(data); err == nil && (e.Intent == nil || e.PolicyID == "") {
			t.Fatalf("DecodeEvaluation(%q) = %+v, want what is required", data, e)
		}
	})
}

func BenchmarkDecodeEvaluation(b *testing.B) {
	data := []byte(ordinaryBody)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := DecodeEvaluation(data); err != nil {
			b.Fatal(err)
		}
	}
}
