package api

import (
	"context"
	"errors"
	"fmt"

	"writ/engine"
)

// errUnchecked ends an update of a rule that is to be checked first.
var errUnchecked = errors.New("the rule is not checked")

// sameToCheck reports whether what checkRule looks at is the same in a and b: all
// but their times.
func sameToCheck(a, b engine.Rule) bool {
	a.CreatedAt, a.UpdatedAt = b.CreatedAt, b.UpdatedAt
	return a == b
}

// checkRule reports all that is wrong with r at once.
func (s *Server) checkRule(ctx context.Context, org string, r *engine.Rule) error {
	var bad fieldErrors
	bad.merge(r.Validate())
	if r.Condition != "" && r.Action != "" {
		compiled, err := engine.CompileRule(*r, s.cfg.Conditions)
		bad.merge(err)
		if err == nil && r.IsActive && compiled.Size() > smallRule {
			if err := s.checkRoom(ctx, org, compiled); err != nil {
				return err
			}
		}
	}
	return bad.err()
}

const (
	// maxRules is what the compiled rules of an organization may take together,
	// in bytes: half of what the cache keeps of all rules with its default size.
	// What is not kept is compiled for each decision, and takes others' place.
	maxRules = 32 << 20
	// smallRule is the size of a rule that is taken without adding up the others,
	// which takes long where they are many.
	smallRule = 4 << 10
)

// checkRoom refuses a rule that leaves no room for the rules of org together.
func (s *Server) checkRoom(ctx context.Context, org string, r *engine.CompiledRule) error {
	rules, err := s.cfg.Sets.Rules(ctx, org)
	if err != nil {
		return fmt.Errorf("adding up the rules: %w", err)
	}
	size := r.Size()
	for _, other := range rules.Rules() {
		if other.Rule().ID != r.Rule().ID {
			size += other.Size()
		}
	}
	if size > maxRules {
		return invalid("condition", "takes the active rules of the organization over %d MiB once they are compiled: "+
			"write them shorter, or fewer of them in Rego", maxRules>>20)
	}
	return nil
}
