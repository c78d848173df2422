package ledger

import (
	"cmp"
	"slices"

	"writ.example/writ/engine"
	"writ.example/writ/internal/scrub"
	"writ.example/writ/storage"
)

// leftOut returns the members of in that r lacks, sorted: see [storage.Record]. made has room for the
// texts.
func leftOut(in *engine.Intent, r *storage.Record, scrub Scrubber, made *texts) []string {
	var few [5]string // of the members
	all := few[:0]
	if r.ActionType != in.ActionType {
		all = append(all, "action_type")
	}
	if cmp.Or(r.Sent.AgentID, r.AgentID) != in.AgentID {
		all = append(all, "agent_id")
	}
	if cmp.Or(r.Sent.IssuedAt, r.IssuedAt) != in.IssuedAt {
		all = append(all, "issued_at")
	}
	before := len(all)
	if cmp.Or(r.Sent.Resource, r.Resource) != in.Resource {
		all = append(all, "resource")
	}
	if r.SessionID != in.SessionID {
		all = append(all, "session_id")
	}
	if len(all) == 0 && len(in.Metadata) == 0 {
		return nil
	}
	whole := make([]string, 0, len(all)+len(in.Metadata)+1)
	whole = append(whole, all[:before]...)
	if len(in.Metadata) > 0 {
		whole = lacksMetadata(whole, in.Metadata, r, scrub, made)
	}
	if whole = append(whole, all[before:]...); len(whole) == 0 {
		return nil
	}
	return whole
}

// lacksMetadata appends to all the parts of sent, the metadata of the intent, that r lacks.
func lacksMetadata(all []string, sent map[string]string, r *storage.Record, scrub Scrubber, made *texts) []string {
	first, keys := len(all), true // keys says that all keys are kept whole
	if r.Metadata == nil {
		for _, key := range r.MetadataKeys {
			_, same := sent[key]
			keys = keys && same
			all = append(all, made.joined(storage.MetadataField, key))
		}
		keys = keys && len(r.MetadataKeys) == len(sent)
	} else {
		for key, value := range sent {
			kept := scrub.Text(key)
			keys = keys && kept == key
			if r.Metadata[kept] != value {
				all = append(all, made.joined(storage.MetadataField, kept))
			}
		}
	}
	if !keys {
		all = append(all, "metadata")
	}
	slices.Sort(all[first:])
	return append(all[:first], slices.Compact(all[first:])...)
}

// LeftOutOf returns the members of its intent that r lacks, as far as r shows them. A row that an earlier
// version of writ decided does not name them. Its receipt proves only that something is missing. So the
// result has every member that is visibly missing or scrubbed. If no member is, it has each member that
// may have been kept in another form.
func LeftOutOf(r *storage.Record) (all []string) {
	in := r.Intent()
	if IntentDigest(in) == r.IntentDigest {
		return nil
	}
	for name, text := range map[string]string{
		"action_type": r.ActionType, "agent_id": in.AgentID, "resource": in.Resource, "session_id": r.SessionID,
	} {
		if scrub.HasMark(text) {
			all = append(all, name)
		}
	}
	for _, key := range r.MetadataKeys {
		if scrub.HasMark(key) && !slices.Contains(all, "metadata") {
			all = append(all, "metadata")
		}
		if value, kept := r.Metadata[key]; !kept || scrub.HasMark(value) {
			all = append(all, storage.MetadataField+key)
		}
	}
	if len(all) == 0 {
		if in.Metadata = map[string]string{}; len(r.Metadata) == 0 && IntentDigest(in) == r.IntentDigest {
			return []string{"metadata"}
		}
		return []string{"agent_id", "issued_at", "resource"}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// isOfAuditDigest reports whether r is the row of its audit digest. The digest of a row that an
// earlier version of writ decided does not cover left_out. There left_out must be what everybody can
// compute.
func isOfAuditDigest(r *storage.Record) bool {
	if r.AuditDigest == AuditDigest(r) {
		return true
	}
	if r.LeftOut == nil || len(r.Findings) > 0 {
		return false
	}
	older := *r
	older.LeftOut = nil
	return r.AuditDigest == AuditDigest(&older) && slices.Equal(r.LeftOut, LeftOutOf(&older))
}
