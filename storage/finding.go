package storage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"writ.example/writ/engine"
)

// Finding is a finding of a decision as data. The reason with the same index says the same in words.
// A decision whose only finding is [engine.CodePolicyAllowed] has none.
type Finding struct {
	// Code is the code with which the reason starts.
	Code    string          `json:"code"`
	Outcome engine.Decision `json:"outcome"`
	// Decides says that Outcome is the decision: the finding alone would have led to it.
	Decides bool `json:"decides,omitzero"`
	// RuleID and RuleRevision are the rule that decided and the revision of its document.
	RuleID       string `json:"rule_id,omitzero"`
	RuleRevision int64  `json:"rule_revision,omitzero"`
	// Cause and Field are as in [engine.Finding], but a metadata key in Field is scrubbed. Neither is
	// ever a value.
	Cause string `json:"cause,omitzero"`
	Field string `json:"field,omitzero"`
}

// MetadataField is the prefix of a metadata key in a [Finding]'s Field and in a [Record]'s LeftOut.
const MetadataField = "metadata."

// Findings are stored one after another:
//
//	findings = *finding
//	finding  = flags(1) [why(1)] [text(code)] [rule] [text(cause)] [text(field)]
//	flags    = outcome + 4 if it decides + 8 if code follows + 10 if a rule follows
//	         + 20 if the rule's id is a text + 40 if why follows
//	why      = cause + 8 * field
//	cause    = 00 none | 01..05 the cause in this place of causes | 07 text(cause) follows
//	field    = 00 none | 01 text(field) follows | 02 "metadata." and text(field), which follows
//	         | 03.. the field in this place of fields, which counts from 3
//	rule     = id(16) int(revision) | text(id) int(revision)
//
// The numbers are hexadecimal, and outcome is an [engine.Decision]. A code is left out if the reason
// with the same index starts with it and a colon. text and int are uvarint(length) bytes and a zigzag
// integer. So a finding of a rule takes some 20 bytes, and all others take one or two.
const (
	outcomeBits  = 0x03
	decidesFlag  = 0x04
	codeFlag     = 0x08
	ruleFlag     = 0x10
	ruleTextFlag = 0x20
	whyFlag      = 0x40

	textCause     = 7
	textField     = 1
	metadataField = 2
	firstField    = 3
)

// causes and fields are stored by their places, which never change.
var (
	causes = []string{"", "missing", "not_decimal", "function", "work", "broken"}
	fields = []string{
		"policy.status", "policy.agent_id", "policy.denied_action_types", "policy.allowed_action_types",
		"policy.blocked_resource_patterns", "policy.allowed_resource_patterns", "policy.max_cost_minor",
		"policy.currency",
		"session.policy_id", "session.agent_id", "session.allowed_action_types", "session.allowed_resource_patterns",
		"session.max_cost_minor", "session.status", "session.expires_at", "cost",
	}
)

// PackFindings returns r's findings as they are stored. It returns nil if r has none.
func (r *Record) PackFindings() (b []byte) {
	for i := range r.Findings {
		b = r.Findings[i].pack(b, r.reasonCode(i))
	}
	return b
}

// reasonCode returns the code with which the reason i starts, or an empty text.
func (r *Record) reasonCode(i int) string {
	if i >= len(r.Reasons) {
		return ""
	}
	code, _, ok := strings.Cut(r.Reasons[i], ":")
	if !ok {
		return ""
	}
	return code
}

func (f *Finding) pack(b []byte, usual string) []byte {
	flags := byte(f.Outcome) & outcomeBits
	if f.Decides {
		flags |= decidesFlag
	}
	if f.Code != usual || usual == "" {
		flags |= codeFlag
	}
	id, isID := ParseID(f.RuleID)
	switch {
	case isID:
		flags |= ruleFlag
	case f.RuleID != "" || f.RuleRevision != 0:
		flags |= ruleFlag | ruleTextFlag
	}
	cause := slices.Index(causes, f.Cause)
	if cause < 0 {
		cause = textCause
	}
	key, isKey := strings.CutPrefix(f.Field, MetadataField)
	field, text := slices.Index(fields, f.Field)+firstField, ""
	switch {
	case f.Field == "":
		field = 0
	case field >= firstField:
	case isKey:
		field, text = metadataField, key
	default:
		field, text = textField, f.Field
	}
	why := byte(cause + 8*field)
	if why != 0 {
		flags |= whyFlag
	}
	if b = append(b, flags); why != 0 {
		b = append(b, why)
	}
	if flags&codeFlag != 0 {
		b = appendShort(b, f.Code)
	}
	if flags&ruleFlag != 0 {
		if isID {
			b = append(b, id[:]...)
		} else {
			b = appendShort(b, f.RuleID)
		}
		b = binary.AppendVarint(b, f.RuleRevision)
	}
	if cause == textCause {
		b = appendShort(b, f.Cause)
	}
	if field == textField || field == metadataField {
		b = appendShort(b, text)
	}
	return b
}

func appendShort(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

var errPacked = errors.New("packed findings are cut short or unknown")

// UnpackFindings sets r's findings from [Record.PackFindings]. r must have its reasons.
func (r *Record) UnpackFindings(b []byte) error {
	u := unpacker{rest: b}
	for len(u.rest) > 0 && !u.failed {
		r.Findings = append(r.Findings, u.finding(r.reasonCode(len(r.Findings))))
	}
	if u.failed {
		return errPacked
	}
	return nil
}

// unpacker reads packed values. After a failure its values mean nothing.
type unpacker struct {
	rest   []byte
	failed bool
}

func (u *unpacker) bytes(n uint64) []byte {
	if n > uint64(len(u.rest)) {
		u.failed, u.rest = true, nil
		return nil
	}
	b := u.rest[:n]
	u.rest = u.rest[n:]
	return b
}

func (u *unpacker) byte() byte {
	if b := u.bytes(1); b != nil {
		return b[0]
	}
	return 0
}

func (u *unpacker) text() string {
	n, size := binary.Uvarint(u.rest)
	if size <= 0 {
		u.failed = true
		return ""
	}
	u.rest = u.rest[size:]
	return string(u.bytes(n))
}

func (u *unpacker) int() int64 {
	n, size := binary.Varint(u.rest)
	if size <= 0 {
		u.failed = true
		return 0
	}
	u.rest = u.rest[size:]
	return n
}

func (u *unpacker) finding(usual string) (f Finding) {
	flags, why := u.byte(), byte(0)
	f.Outcome, f.Decides, f.Code = engine.Decision(flags&outcomeBits), flags&decidesFlag != 0, usual
	if flags&^(outcomeBits|decidesFlag|codeFlag|ruleFlag|ruleTextFlag|whyFlag) != 0 {
		u.failed = true
	}
	if flags&whyFlag != 0 {
		why = u.byte()
	}
	if flags&codeFlag != 0 {
		f.Code = u.text()
	}
	switch {
	case flags&ruleTextFlag != 0:
		f.RuleID = u.text()
	case flags&ruleFlag != 0:
		if id := u.bytes(16); id != nil {
			f.RuleID = uuid.UUID(id).String()
		}
	}
	if flags&(ruleFlag|ruleTextFlag) != 0 {
		f.RuleRevision = u.int()
	}
	switch cause, field := int(why&7), int(why>>3); {
	case cause == textCause:
		f.Cause = u.text()
		f.Field = u.field(field)
	case cause >= len(causes):
		u.failed = true
	default:
		f.Cause = causes[cause]
		f.Field = u.field(field)
	}
	return f
}

func (u *unpacker) field(field int) string {
	switch {
	case field == 0:
		return ""
	case field == textField:
		return u.text()
	case field == metadataField:
		return MetadataField + u.text()
	case field-firstField < len(fields):
		return fields[field-firstField]
	}
	u.failed = true
	return ""
}

// leavable are the members of an intent that a row may lack. Their places are stored and never
// change.
var leavable = []string{"resource", "agent_id", "action_type", "issued_at", "session_id", "approval_id", "metadata"}

// LeftOut is stored as
//
//	left-out = members(1) *text
//
// Bit n of members says that the row lacks the member in the place n of leavable. If bit 7 is set, the
// texts are the metadata values that the row lacks, each with its prefix. Otherwise there are no
// texts, and the row lacks all values of a metadata that has only keys. So nothing is stored of
// a row that lacks these alone.
const listedFlag = 0x80

// PackLeftOut returns r's LeftOut as it is stored. It returns nil if nothing need be stored.
func (r *Record) PackLeftOut() []byte {
	if r.lacksKeyed(r.LeftOut) {
		return nil
	}
	members, keys := byte(0), []string(nil)
	for _, s := range r.LeftOut {
		if i := slices.Index(leavable, s); i >= 0 {
			members |= 1 << i
		} else {
			keys = append(keys, s)
		}
	}
	canonical := slices.Equal(r.LeftOut, leftOut(members, keys))
	if canonical && r.lacksKeyed(keys) {
		return []byte{members}
	}
	if !canonical { // in an order or with a repetition that writ never writes
		members, keys = 0, r.LeftOut
	}
	b := []byte{members | listedFlag}
	for _, s := range keys {
		b = appendShort(b, s)
	}
	return b
}

// lacksKeyed reports whether list has exactly the values of all keys of a metadata without values.
func (r *Record) lacksKeyed(list []string) bool {
	if r.Metadata != nil {
		return len(list) == 0
	}
	if len(list) != len(r.MetadataKeys) {
		return false
	}
	for i, s := range list {
		if key, ok := strings.CutPrefix(s, MetadataField); !ok || key != r.MetadataKeys[i] {
			return false
		}
	}
	return true
}

// leftOut returns the LeftOut of members and of keys.
func leftOut(members byte, keys []string) (all []string) {
	if members == 0 {
		return keys
	}
	for i, name := range leavable {
		if members&(1<<i) != 0 {
			all = append(all, name)
		}
	}
	all = append(all, keys...)
	slices.Sort(all)
	return all
}

// UnpackLeftOut sets r's LeftOut from [Record.PackLeftOut]. r must have its metadata.
func (r *Record) UnpackLeftOut(b []byte) error {
	members, keys := byte(0), []string(nil)
	u := unpacker{rest: b}
	if len(b) > 0 {
		members = u.byte()
	}
	if members&listedFlag != 0 {
		for len(u.rest) > 0 && !u.failed {
			keys = append(keys, u.text())
		}
	} else if r.Metadata == nil {
		for _, key := range r.MetadataKeys {
			keys = append(keys, MetadataField+key)
		}
	}
	r.LeftOut = leftOut(members&^listedFlag, keys)
	if u.failed || len(u.rest) > 0 {
		return fmt.Errorf("what a row lacks: %w", errPacked)
	}
	return nil
}
