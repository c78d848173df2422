package load

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
)

// NoDecision stands for the decision where an answer has a problem in place of one.
const NoDecision = "none"

// decisions are the names of decisions.
var decisions = [...]string{"allow", "approval_required", "deny", NoDecision}

// These texts begin each result of a writ server. Within a JSON string their quotes would be escaped.
var (
	okMember       = []byte(`"ok":`)
	decisionMember = []byte(`,"decision":"`)
)

// decided reads the next decision in an answer of a writ server, and returns what follows it. It returns an empty
// text if no result is left.
func decided(answer []byte) (decision string, rest []byte) {
	i := bytes.Index(answer, okMember)
	if i < 0 {
		return "", nil
	}
	rest = answer[i+len(okMember):]
	if !bytes.HasPrefix(rest, []byte("true")) {
		return NoDecision, rest
	}
	i = bytes.Index(rest, decisionMember)
	if i < 0 {
		return NoDecision, rest
	}
	rest = rest[i+len(decisionMember):]
	for _, name := range decisions[:] {
		if bytes.HasPrefix(rest, []byte(name+`"`)) {
			return name, rest
		}
	}
	return NoDecision, rest
}

// tally is what the answers of one request say.
type tally struct {
	counts     [len(decisions)]int
	mismatched int
	mismatch   string // the first answer that is not the one that was wanted
}

func (t *tally) add(decision string, w want, answer []byte) {
	t.counts[slices.Index(decisions[:], decision)]++
	if decision == NoDecision || w.decision != "" && decision != w.decision {
		if t.mismatched++; t.mismatch == "" {
			t.mismatch = fmt.Sprintf("%s got %s, want %s: %.200s", cmp.Or(w.name, "an intent"), decision,
				cmp.Or(w.decision, "any decision"), answer)
		}
	}
}

// check compares an answer with 200 with what the target requires. If the target counts mismatches, they are no
// error.
func (t *Target) check(got *tally, answer []byte, wants []want) error {
	switch {
	case t.Decides:
		rest := answer
		for _, w := range wants {
			var decision string
			if decision, rest = decided(rest); decision == "" {
				return fmt.Errorf("an answer lacks decisions, want %d: %.300s", len(wants), answer)
			}
			got.add(decision, w, answer)
		}
		if got.mismatched > 0 && !t.Counts {
			return fmt.Errorf("%d of %d intents were not decided as wanted: %s", got.mismatched, len(wants),
				got.mismatch)
		}
	case t.Allowed != "":
		if n := bytes.Count(answer, []byte(t.Allowed)); n != t.Intents {
			return fmt.Errorf("%d of %d intents were allowed: %.300s", n, t.Intents, answer)
		}
	}
	return nil
}
