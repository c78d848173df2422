package ledger

import (
	"strings"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/receipt"
)

// projectFindings returns the findings of a result as a row keeps them. It returns nil if nothing but
// the policy decided.
func projectFindings(result *engine.Result, scrub Scrubber) []storage.Finding {
	if len(result.Findings) == 1 && result.Findings[0].Code == engine.CodePolicyAllowed {
		return nil
	}
	all := make([]storage.Finding, len(result.Findings))
	for i := range result.Findings {
		f := &result.Findings[i]
		all[i] = storage.Finding{
			Code: f.Named(), Outcome: f.Outcome, Decides: f.Outcome == result.Decision, RuleID: f.RuleID,
			RuleRevision: f.RuleRevision, Cause: f.Cause, Field: f.Field,
		}
		if key, ok := strings.CutPrefix(f.Field, storage.MetadataField); ok {
			all[i].Field = storage.MetadataField + scrub.Text(key)
		}
	}
	return all
}

// AppendFindings appends the canonical JSON of findings.
func AppendFindings(dst []byte, all []storage.Finding) []byte {
	if len(all) == 0 {
		return append(dst, `[]`...)
	}
	dst = append(dst, '[')
	for i := range all {
		f, members := &all[i], len(dst)
		dst = appendOptional(dst, `,"cause":`, f.Cause)
		dst = receipt.AppendMember(dst, `,"code":`, f.Code)
		if f.Decides {
			dst = append(dst, `,"decides":true`...)
		}
		dst = appendOptional(dst, `,"field":`, f.Field)
		dst = receipt.AppendMember(dst, `,"outcome":`, f.Outcome.String())
		dst = appendOptional(dst, `,"rule_id":`, f.RuleID)
		dst = append(appendNumber(dst, `,"rule_revision":`, f.RuleRevision), '}', ',')
		dst[members] = '{' // in place of the first comma
	}
	dst[len(dst)-1] = ']'
	return dst
}
