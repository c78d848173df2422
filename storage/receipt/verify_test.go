package receipt

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"reflect"
	"strings"
	"testing"
	"time"
)

func sealed(t testing.TB, n int) ([]Receipt, Keys) {
	rs := vectorReceipts(1, n)
	return rs, seal(t, testSigner(1), Chain{ID: vectorChain}, rs)
}

func TestVerifyExpiry(t *testing.T) {
	rs, keys := sealed(t, 1)
	exp := time.Unix(rs[0].Exp, 0)
	for _, tc := range []struct {
		name string
		now  time.Time
		want error
	}{
		{"long before", time.Unix(0, 0), nil},
		{"last nanosecond", exp.Add(-1), nil},
		{"at exp", exp, ErrExpired},
		{"after", exp.Add(time.Hour), ErrExpired},
	} {
		if err := Verify(rs[0], keys, tc.now); !errors.Is(err, tc.want) {
			t.Errorf("%s: Verify = %v, want %v", tc.name, err, tc.want)
		}
	}
	want := "receipt: expired: at " + exp.UTC().Format(time.RFC3339)
	if err := Verify(rs[0], keys, exp.Add(time.Hour)); err == nil || err.Error() != want {
		t.Errorf("Verify = %v, want %s", err, want)
	}
}

func TestDecision_Receipts_KeysRotateWithoutInvalidatingOldReceipts(t *testing.T) {
	before, _ := sealed(t, 2)
	after := vectorReceipts(2, 2)
	seal(t, testSigner(2), Chain{ID: vectorChain}, after)
	keys := keysOf(t, testSigner(1).Public(), testSigner(2).Public())
	for _, r := range append(before, after...) {
		if err := Verify(r, keys, benchTime); err != nil {
			t.Errorf("Verify = %v", err)
		}
	}
}

// TestEveryBitOfSigCounts changes each bit of the sig of every receipt of a small batch. The
// changed receipt must not verify.
func TestEveryBitOfSigCounts(t *testing.T) {
	rs, keys := sealed(t, 3)
	for i, r := range rs {
		raw, err := encoding().DecodeString(r.Sig)
		must(t, err)
		for bit := range len(raw) * 8 {
			b := bytes.Clone(raw)
			b[bit/8] ^= 1 << (bit % 8)
			r.Sig = encoding().EncodeToString(b)
			if err := Verify(r, keys, benchTime); !errors.Is(err, ErrSignature) && !errors.Is(err, ErrMalformed) {
				t.Fatalf("leaf %d, bit %d changed: Verify = %v", i, bit, err)
			}
		}
	}
}

// TestSigsAreNotExchangeable checks that the sig of one leaf does not verify another leaf of the
// same batch.
func TestSigsAreNotExchangeable(t *testing.T) {
	rs, keys := sealed(t, 9)
	for i := range rs {
		for j := range rs {
			r := rs[i]
			r.Sig = rs[j].Sig
			if err := Verify(r, keys, benchTime); (err == nil) != (i == j) {
				t.Errorf("receipt %d with the sig of %d: Verify = %v", i, j, err)
			}
		}
	}
}

func TestVerifyRefusesAmbiguousStrings(t *testing.T) {
	s := testSigner(1)
	r := vectorReceipts(1, 1)[0]
	r.DecisionID = "a\uFFFD"
	rs := []Receipt{r}
	keys := seal(t, s, Chain{}, rs)
	must(t, Verify(rs[0], keys, benchTime))
	rs[0].DecisionID = "a\xff" // AppendString writes the same leaf for both
	if err := Verify(rs[0], keys, benchTime); !errors.Is(err, ErrMalformed) {
		t.Errorf("Verify with invalid UTF-8 = %v, want ErrMalformed", err)
	}
}

func TestDecision_Receipts_DigestCoversEveryField(t *testing.T) {
	base := examplePayload()
	seen := map[string]string{base.Digest(): "unchanged"}
	for name, edit := range map[string]func(p *Payload){
		"organization_id": func(p *Payload) { p.OrganizationID += "x" },
		"intent_id":       func(p *Payload) { p.IntentID += "x" },
		"intent_digest":   func(p *Payload) { p.IntentDigest += "x" },
		"policy_id":       func(p *Payload) { p.PolicyID += "x" },
		"policy_version":  func(p *Payload) { p.PolicyVersion++ },
		"decision":        func(p *Payload) { p.Decision = Deny },
		"decision_id":     func(p *Payload) { p.DecisionID += "x" },
		"reasons":         func(p *Payload) { p.Reasons = append(p.Reasons[:1:1], "more") },
		"no reasons":      func(p *Payload) { p.Reasons = nil },
		"exp":             func(p *Payload) { p.Exp++ },
	} {
		p := base
		edit(&p)
		if other, ok := seen[p.Digest()]; ok {
			t.Errorf("%s has the digest of %s", name, other)
		}
		seen[p.Digest()] = name
		r := Receipt{Decision: base.Decision, DecisionID: base.DecisionID, Digest: base.Digest(), Exp: base.Exp}
		if err := VerifyPayload(r, p); !errors.Is(err, ErrPayload) {
			t.Errorf("%s changed: VerifyPayload = %v, want ErrPayload", name, err)
		}
		if err := VerifyPayload(r, base); err != nil {
			t.Errorf("VerifyPayload = %v, want nil", err)
		}
	}
}

// TestVerifyPayloadComparesSharedMembers checks that VerifyPayload compares all members that both a
// receipt and a payload have. The digest alone would not be enough, because the digest is only a
// claim of the receipt.
func TestVerifyPayloadComparesSharedMembers(t *testing.T) {
	p := examplePayload()
	for name, edit := range map[string]func(r *Receipt){
		"decision":    func(r *Receipt) { r.Decision = Deny },
		"decision_id": func(r *Receipt) { r.DecisionID += "x" },
		"exp":         func(r *Receipt) { r.Exp++ },
	} {
		r := Receipt{Decision: p.Decision, DecisionID: p.DecisionID, Digest: p.Digest(), Exp: p.Exp}
		edit(&r)
		if err := VerifyPayload(r, p); !errors.Is(err, ErrPayload) || !strings.HasSuffix(err.Error(), ": "+name) {
			t.Errorf("%s changed: VerifyPayload = %v, want ErrPayload for it", name, err)
		}
	}
}

func TestVerifyPayloadRefusesAmbiguity(t *testing.T) {
	for name, edit := range map[string]func(p *Payload){
		"invalid UTF-8":   func(p *Payload) { p.Reasons = []string{"\xff"} },
		"unsafe version":  func(p *Payload) { p.PolicyVersion = maxSafeInt + 1 },
		"unsafe negative": func(p *Payload) { p.PolicyVersion = -maxSafeInt - 1 },
	} {
		p := examplePayload()
		edit(&p)
		r := Receipt{Decision: p.Decision, DecisionID: p.DecisionID, Digest: p.Digest(), Exp: p.Exp}
		if err := VerifyPayload(r, p); !errors.Is(err, ErrPayload) {
			t.Errorf("%s: VerifyPayload = %v, want ErrPayload", name, err)
		}
	}
}

func TestParseResult(t *testing.T) {
	rs, keys := sealed(t, 3)
	for i, approved := range []bool{true, false, false} {
		text := resultJSON(t, rs[i], approved)
		got, err := ParseResult([]byte(text))
		if err != nil || got.Receipt != rs[i] || len(got.Reasons) != 2 {
			t.Errorf("ParseResult(%s) = %+v, %v", text, got, err)
		}
		named := strings.Replace(text, `"reasons"`, fmt.Sprintf(`"decision":%q,"reasons"`, rs[i].Decision), 1)
		if same, err := ParseResult([]byte(named)); err != nil || !reflect.DeepEqual(same, got) {
			t.Errorf("ParseResult(%s) = %+v, %v, want as without decision", named, same, err)
		}
		if err := Verify(got.Receipt, keys, benchTime); err != nil {
			t.Errorf("Verify = %v", err)
		}
	}
}

func resultJSON(t testing.TB, r Receipt, approved bool) string {
	return fmt.Sprintf(`{"ok":true,"approved":%t,"reasons":["a: b","c: d"],"decision_id":%q,"receipt":%s}`, approved, r.DecisionID, encode(t, r))
}

func TestParseResultRefuses(t *testing.T) {
	rs, _ := sealed(t, 3)
	allow, deny := resultJSON(t, rs[0], true), resultJSON(t, rs[1], false)
	wait := resultJSON(t, rs[2], false)
	for _, tc := range []struct{ name, text, from, to, because string }{
		{"approved though denied", deny, `"approved":false`, `"approved":true`, "approved is true but the receipt says deny"},
		{"approved though it waits", wait, `"approved":false`, `"approved":true`, "but the receipt says approval_required"},
		{"not approved though allowed", allow, `"approved":true`, `"approved":false`, "approved is false but the receipt says allow"},
		{"a decision that the receipt denies", deny, `"reasons"`, `"decision":"allow","reasons"`, `decision is "allow" but the receipt says deny`},
		{"a hold that the receipt allows", allow, `"reasons"`, `"decision":"approval_required","reasons"`, "the receipt says allow"},
		{"decision null", allow, `"reasons"`, `"decision":null,"reasons"`, "decision is null"},
		{"decision empty", allow, `"reasons"`, `"decision":"","reasons"`, `decision is "" but`},
		{"duplicate decision", allow, `"reasons"`, `"decision":"allow","decision":"allow","reasons"`, `duplicate member "decision"`},
		{"another decision_id", allow, `"decision_id":"0198`, `"decision_id":"0199`, "decision_id is not the receipt's"},
		{"not ok", allow, `"ok":true`, `"ok":false`, "ok is false"},
		{"unknown member", allow, `{"ok"`, `{"jwk":{},"ok"`, `unknown member "jwk"`},
		{"duplicate receipt", allow, `{"ok"`, `{"receipt":{},"ok"`, `duplicate member "receipt"`},
		{"case variant", allow, `"approved"`, `"Approved"`, `unknown member "Approved"`},
		{"no receipt", allow, `"receipt"`, `"recept"`, `unknown member "recept"`},
		{"receipt null", allow, encode(t, rs[0]), `null`, "not an object"},
		{"reasons null", allow, `["a: b","c: d"]`, `null`, "reasons is null"},
		{"reasons an object", allow, `["a: b","c: d"]`, `{}`, "reasons is object, not array"},
		{"reason not a string", allow, `"a: b"`, `1`, "reasons holds number"},
		{"approved a string", allow, `"approved":true`, `"approved":"true"`, "approved is string, not boolean"},
		{"unknown member of the receipt", allow, `{"decision"`, `{"jwk":{},"decision"`, `unknown member "jwk"`},
	} {
		text := strings.Replace(tc.text, tc.from, tc.to, 1)
		if text == tc.text {
			t.Fatalf("%s: nothing replaced", tc.name)
		}
		_, err := ParseResult([]byte(text))
		if !errors.Is(err, ErrMalformed) || !strings.Contains(err.Error(), tc.because) {
			t.Errorf("%s: ParseResult = %v, want ErrMalformed with %q", tc.name, err, tc.because)
		}
	}
}

func FuzzParse(f *testing.F) {
	rs, _ := sealed(f, 2)
	f.Add([]byte(encode(f, rs[0])))
	f.Add([]byte(resultJSON(f, rs[1], false)))
	f.Add([]byte(`{"decision":"allow","Decision":"deny"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		// ParseResult must not panic on any input.
		res, err := ParseResult(data)
		if err != nil && !errors.Is(err, ErrMalformed) || err == nil && res.Receipt.check() != nil {
			t.Fatalf("ParseResult(%q) = %+v, %v", data, res, err)
		}
		r, err := Parse(data)
		if err != nil {
			if !errors.Is(err, ErrMalformed) {
				t.Fatalf("Parse(%q) = %v, want ErrMalformed", data, err)
			}
			return
		}
		var loose Receipt
		if err := json.Unmarshal(data, &loose); err != nil || loose != r {
			t.Fatalf("Parse(%q) = %+v, but encoding/json reads %+v, %v", data, r, loose, err)
		}
		if back, err := Parse([]byte(encode(t, r))); err != nil || back != r {
			t.Fatalf("Parse(json of %+v) = %+v, %v", r, back, err)
		}
	})
}

func FuzzVerify(f *testing.F) {
	rs, keys := sealed(f, 5)
	genuine := make(map[Receipt]bool)
	for _, r := range rs {
		genuine[r] = true
		f.Add(r.Decision, r.DecisionID, r.Digest, r.Exp, r.Sig, r.KeyID, uint16(0), byte(0))
		f.Add(r.Decision, r.DecisionID, r.Digest, r.Exp, r.Sig, r.KeyID, uint16(atIndex), byte(1))
		f.Add(r.Decision, r.DecisionID, r.Digest, r.Exp, editSig(f, r, addOrder).Sig, r.KeyID, uint16(0), byte(0))
	}
	f.Fuzz(func(t *testing.T, decision, id, digest string, exp int64, sig, kid string, at uint16, mask byte) {
		r := Receipt{Decision: decision, DecisionID: id, Digest: digest, Exp: exp, Sig: sig, KeyID: kid}
		if raw, err := encoding().DecodeString(sig); err == nil && mask != 0 && int(at) < len(raw) {
			raw[at] ^= mask
			r.Sig = encoding().EncodeToString(raw)
		}
		if err := Verify(r, keys, benchTime); err == nil && !genuine[r] {
			t.Fatalf("%+v verifies but was never signed", r)
		}
	})
}

// TestDecision_Receipts_StandardLibraryAlone checks that the package imports only the standard
// library, so that a verifier of receipts needs no other code.
func TestDecision_Receipts_StandardLibraryAlone(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	if got := strings.Fields(string(out)); len(got) != 1 || !strings.HasSuffix(got[0], "storage/receipt") {
		t.Errorf("dependencies outside the standard library = %v, want the package alone", got)
	}
}
