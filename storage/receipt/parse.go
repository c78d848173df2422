package receipt

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// Parse reads one receipt from JSON. The receipt must have exactly the members decision,
// decision_id, digest, exp, sig and kid, in any order. Each member must occur once, in this
// spelling, and must not be null. Parse refuses any other member, such as a jwk with another key.
// It also refuses anything after the object. The errors are ErrMalformed. Parse does not decode
// sig, but [Verify] does.
func Parse(data []byte) (Receipt, error) {
	v, err := parseJSON(data)
	if err != nil {
		return Receipt{}, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return receiptOf(v)
}

// Result is the answer of an evaluation, without the members that the receipt repeats.
type Result struct {
	Reasons     []string
	AuditDigest string // empty if the answer has no audit digest
	Receipt     Receipt
}

// ParseResult reads a whole PolicyEvaluationResult as strictly as Parse. ok must be true, and
// decision_id must equal the receipt's, and so must decision, if it is there. approved must be true
// exactly if the receipt's decision is allow. So an answer cannot claim more than its receipt.
func ParseResult(data []byte) (Result, error) {
	v, err := parseJSON(data)
	if err != nil {
		return Result{}, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	f := fieldsOf(v)
	f.only("ok", "approved", "decision", "reasons", "decision_id", "audit_digest", "receipt")
	ok, approved := member[bool](f, "ok"), member[bool](f, "approved")
	id, reasons := f.string("decision_id"), f.strings("reasons")
	audit, decision := "", ""
	_, decides := f.members["decision"]
	if decides {
		decision = f.string("decision")
	}
	if _, ok := f.members["audit_digest"]; ok {
		audit = f.string("audit_digest")
	}
	if f.err != nil {
		return Result{}, f.err
	}
	r, err := receiptOf(f.members["receipt"])
	if err != nil {
		return Result{}, err
	}
	switch {
	case !ok:
		return Result{}, fmt.Errorf("%w: ok is false beside a receipt", ErrMalformed)
	case id != r.DecisionID:
		return Result{}, fmt.Errorf("%w: decision_id is not the receipt's", ErrMalformed)
	case decides && decision != r.Decision:
		return Result{}, fmt.Errorf("%w: decision is %.32q but the receipt says %s", ErrMalformed, decision, r.Decision)
	case approved != (r.Decision == Allow):
		return Result{}, fmt.Errorf("%w: approved is %t but the receipt says %s", ErrMalformed, approved, r.Decision)
	}
	return Result{Reasons: reasons, AuditDigest: audit, Receipt: r}, nil
}

func receiptOf(v any) (Receipt, error) {
	f := fieldsOf(v)
	f.only("decision", "decision_id", "digest", "exp", "sig", "kid")
	r := Receipt{
		Decision:   f.string("decision"),
		DecisionID: f.string("decision_id"),
		Digest:     f.string("digest"),
		Exp:        f.int("exp"),
		Sig:        f.string("sig"),
		KeyID:      f.string("kid"),
	}
	if f.err != nil {
		return Receipt{}, f.err
	}
	if err := r.check(); err != nil {
		return Receipt{}, err
	}
	return r, nil
}

// fields reads the members of an object. It keeps the first error.
type fields struct {
	members map[string]any
	err     error
}

func fieldsOf(v any) *fields {
	members, ok := v.(map[string]any)
	f := &fields{members: members}
	if !ok {
		f.fail("not an object")
	}
	return f
}

func (f *fields) fail(format string, args ...any) {
	if f.err == nil {
		f.err = fmt.Errorf("%w: %s", ErrMalformed, fmt.Sprintf(format, args...))
	}
}

// only refuses members whose names are not in the list.
func (f *fields) only(names ...string) {
	for _, name := range slices.Sorted(maps.Keys(f.members)) {
		if !slices.Contains(names, name) {
			f.fail("unknown member %.64q", name)
		}
	}
}

// member returns a member of type T.
func member[T any](f *fields, name string) T {
	v, ok := f.members[name]
	t, is := v.(T)
	switch {
	case !ok:
		f.fail("no member %q", name)
	case !is:
		f.fail("%s is %s, not %s", name, kindOf(v), kindOf(t))
	}
	return t
}

func (f *fields) string(name string) string { return member[string](f, name) }

// int also refuses 1.0 and 1e3: a number in a receipt has only one spelling.
func (f *fields) int(name string) int64 {
	text := member[json.Number](f, name).String()
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || text == "-0" {
		f.fail("%s %.32q is not an integer", name, text)
	}
	return n
}

func (f *fields) strings(name string) []string {
	var list []string
	for _, v := range member[[]any](f, name) {
		s, ok := v.(string)
		if !ok {
			f.fail("%s holds %s", name, kindOf(v))
		}
		list = append(list, s)
	}
	return list
}
