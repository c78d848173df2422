package receipt

import (
	"fmt"
	"slices"
	"strconv"
)

// Parse reads one receipt from JSON: exactly the members decision,
// decision_id, digest, exp, sig and kid, each once, in any order, spelt so,
// none of them null. Another member, such as a jwk that brings its own key, is
// refused, and so is anything after the object. An error is ErrMalformed.
// Parse does not look into sig; [Verify] does.
func Parse(data []byte) (Receipt, error) {
	v, err := parseJSON(data)
	if err != nil {
		return Receipt{}, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return receiptOf(v)
}

// Result is the answer of an evaluation, as far as the receipt does not say
// it already.
type Result struct {
	Reasons     []string
	AuditDigest string // empty where the answer has none
	Receipt     Receipt
}

// ParseResult reads a whole PolicyEvaluationResult with the strictness of
// Parse. Beyond that ok must be true, decision_id must be the receipt's, and
// approved must be true exactly if the receipt's decision is allow: an answer
// may not say more than its receipt.
func ParseResult(data []byte) (Result, error) {
	v, err := parseJSON(data)
	if err != nil {
		return Result{}, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	f := fields{value: v}
	f.only("ok", "approved", "reasons", "decision_id", "audit_digest", "receipt")
	ok, approved := f.bool("ok"), f.bool("approved")
	id, reasons := f.string("decision_id"), f.strings("reasons")
	audit := ""
	if f.get("audit_digest").kind != "" {
		audit = f.string("audit_digest")
	}
	if f.err != nil {
		return Result{}, f.err
	}
	r, err := receiptOf(v.get("receipt"))
	if err != nil {
		return Result{}, err
	}
	switch {
	case !ok:
		return Result{}, fmt.Errorf("%w: ok is false beside a receipt", ErrMalformed)
	case id != r.DecisionID:
		return Result{}, fmt.Errorf("%w: decision_id is not the receipt's", ErrMalformed)
	case approved != (r.Decision == Allow):
		return Result{}, fmt.Errorf("%w: approved is %t but the receipt says %s", ErrMalformed, approved, r.Decision)
	}
	return Result{Reasons: reasons, AuditDigest: audit, Receipt: r}, nil
}

func receiptOf(v value) (Receipt, error) {
	f := fields{value: v}
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

// get returns the member called name, or a value without a kind.
func (v value) get(name string) value {
	for _, m := range v.members {
		if m.name == name {
			return m.value
		}
	}
	return value{}
}

func (v value) textOf(name string) string {
	if m := v.get(name); m.kind == kindString {
		return m.text
	}
	return ""
}

// fields reads the members of an object and keeps the first error.
type fields struct {
	value
	err error
}

func (f *fields) fail(format string, args ...any) {
	if f.err == nil {
		f.err = fmt.Errorf("%w: %s", ErrMalformed, fmt.Sprintf(format, args...))
	}
}

// only refuses what is not an object, and members that are not in names.
func (f *fields) only(names ...string) {
	if f.kind != kindObject {
		f.fail("not an object")
	}
	for _, m := range f.members {
		if !slices.Contains(names, m.name) {
			f.fail("unknown member %.64q", m.name)
		}
	}
}

func (f *fields) want(name string, k kind) value {
	v := f.get(name)
	switch v.kind {
	case k:
	case "":
		f.fail("no member %q", name)
	default:
		f.fail("%s is %s, not %s", name, v.kind, k)
	}
	return v
}

func (f *fields) string(name string) string { return f.want(name, kindString).text }

func (f *fields) bool(name string) bool { return f.want(name, kindBool).text == "true" }

// int refuses 1.0 and 1e3 as well: a receipt's numbers are written one way.
func (f *fields) int(name string) int64 {
	v := f.want(name, kindNumber)
	n, err := strconv.ParseInt(v.text, 10, 64)
	if err != nil || v.text == "-0" {
		f.fail("%s %.32q is not an integer", name, v.text)
	}
	return n
}

func (f *fields) strings(name string) []string {
	var list []string
	for _, v := range f.want(name, kindArray).items {
		if v.kind != kindString {
			f.fail("%s holds %s", name, v.kind)
		}
		list = append(list, v.text)
	}
	return list
}
