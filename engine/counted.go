package engine

import (
	"fmt"

	"writ.example/writ/engine/condition"
	"writ.example/writ/engine/proof"
)

// refuseUncounted refuses a condition with a counter that counts no intent for which the condition
// asks it. Such a comparison is always false, so the author meant something else.
func refuseUncounted(c *condition.Condition) error {
	if len(c.Counters) == 0 {
		return nil
	}
	var p problems
	for _, counted := range proof.New().Counters(c.Holds) {
		if counted.Truth == condition.False {
			p.addIn("condition", condition.Mistake{Message: fmt.Sprintf(
				"can never count what the rule is about: the counter %s counts no action type or cost "+
					"of the intents that are compared with it, so the comparison is false for all of them. "+
					"Count what the rule is about",
				condition.Quote(counted.Counter.Key))})
		}
	}
	return p.err()
}
