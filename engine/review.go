package engine

import "writ/engine/condition"

// Review returns what the condition says that its author may not mean.
func (c *CompiledRule) Review() condition.Review {
	switch {
	case c.err != nil:
		return condition.Review{}
	case c.rego != nil:
		return c.rego.Review()
	}
	return condition.ReviewOf(c.rule.Condition)
}
