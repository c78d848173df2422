package condition

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"writ.example/writ/engine/glob"
)

// Counter counts the intents that were allowed in a sliding window, or adds up their costs. If a
// counter does not count the current intent, the counter has no value for it, and every comparison
// is false.
type Counter struct {
	// Sum adds up the cost in Currency. Without Sum the counter counts intents.
	Sum      bool
	Currency string
	// ByAgent counts only the intents of the agent. BySession counts only the intents of the
	// session. If neither is set, the counter counts all intents of the organization.
	ByAgent, BySession bool
	// ActionType is a glob of action types. "*" matches all action types. It matches as a denied
	// type does: see [glob.CompileDenied].
	ActionType string
	Window     time.Duration
	// Key is the counter in text form. Two counters are equal if their keys are equal.
	Key string
	// Revision is the lowest revision of the rules that compare the counter. Bounds is sorted. A
	// comparison has the same result for every number from 0 to its bound. Revision and Bounds are
	// not part of the counter's identity.
	Revision int64
	Bounds   []int64

	actions *glob.Actions
}

// UpTo returns the greatest number for which every comparison has the same result as for n.
func (c *Counter) UpTo(n int64) int64 {
	if i, _ := slices.BinarySearch(c.Bounds, n); i < len(c.Bounds) {
		return c.Bounds[i]
	}
	return MaxInteger
}

// JoinCounter adds c to counters. If counters has a counter with the same key, a copy replaces that
// counter. The copy has the bounds of both counters and the lower revision.
func JoinCounter(counters []*Counter, c *Counter) []*Counter {
	i := slices.IndexFunc(counters, func(d *Counter) bool { return d.Key == c.Key })
	if i < 0 {
		return append(counters, c)
	}
	joined := *counters[i]
	joined.Revision = min(joined.Revision, c.Revision)
	joined.Bounds = slices.Concat(joined.Bounds, c.Bounds)
	slices.Sort(joined.Bounds)
	joined.Bounds = slices.Compact(joined.Bounds)
	counters[i] = &joined
	return counters
}

// Count is the value of a counter. It includes the current intent.
type Count struct {
	Counter *Counter
	N       int64 // Uncounted if the counter does not count the intent
	// Until is zero, or about when the value will be known. Then every condition that reads it is an error.
	Until time.Time
}

// Uncounted is the value of a counter that does not count the intent.
const Uncounted = -1

// AllKnown reports whether all counts are known.
func AllKnown(counts []Count) bool {
	return !slices.ContainsFunc(counts, func(c Count) bool { return !c.Until.IsZero() })
}

// Buckets is the number of parts of a window. All intents of a part leave the window at the same
// time. So a counter looks back for at least the window's length, and at most a sixtieth longer.
const Buckets = 60

// Bucket returns the length of a part of the window, in whole milliseconds.
func (c *Counter) Bucket() time.Duration {
	return (c.Window/Buckets + time.Millisecond - 1).Truncate(time.Millisecond)
}

// Counts reports whether c counts an intent. currency is "" if the intent has no cost.
func (c *Counter) Counts(actionType, currency, session string) bool {
	return c.actions.Match(actionType) >= 0 && (!c.Sum || currency == c.Currency) && (!c.BySession || session != "")
}

// counterKey returns the counter as a text.
func (c *Counter) counterKey() string {
	key := "count"
	if c.Sum {
		key = "sum of cost.amount_minor in " + c.Currency
	}
	if c.ActionType != "*" {
		key += " of " + c.ActionType
	}
	if c.ByAgent {
		key += " by agent_id"
	}
	if c.BySession {
		key += " by session_id"
	}
	return fmt.Sprintf("%s in %ds", key, c.Window/time.Second)
}

// counterForm is the end of error messages. It shows the two forms of counters to an author.
const counterForm = `want {"count": {"by": ["agent_id"], "action_type": "email.send", "window": "1h"}, "gt": 20} or ` +
	`{"sum": {"field": "cost.amount_minor", "currency": "EUR", "by": ["agent_id"], "window": "24h"}, "gt": 20000}`

// isCounterKey reports whether a member of a tree is a counter.
func isCounterKey(name string) bool { return name == "count" || name == "sum" }

// counterLeaf parses {"count": …, "gt": n} and {"sum": …, "gt": n}.
func (p *parser) counterLeaf(obj jsonNode) *Node {
	p.nodes++
	var c *Counter
	var op comparison
	var value *jsonNode
	for i := range obj.members {
		m := &obj.members[i]
		named, isOp := named(m.name)
		switch {
		case isCounterKey(m.name) && c != nil:
			return p.misnamed(m.value.at, "one of count and sum, not both: %s", counterForm)
		case isCounterKey(m.name):
			if c = p.counter(m.name == "sum", m.value); c == nil {
				return opaque()
			}
		case isOp && !strings.HasPrefix(m.name, "$") && named.op >= Gt && named.op <= Lte && value == nil:
			op, value = named, &m.value
		default:
			return p.misnamed(m.value.at, "%q does not go beside a counter: %s", m.name, counterForm)
		}
	}
	if value == nil {
		return p.wrong(obj.at, "the counter is compared with nothing: %s", counterForm)
	}
	leaf := p.leaf(Field{ID: CounterValue, Kind: Int, Key: c.Key, Counter: c}, op, *value)
	if leaf.Kind == Leaf {
		c.Bounds = []int64{leaf.Values[0].Num}
		if op.op == Gte || op.op == Lt {
			c.Bounds[0]--
		}
	}
	return leaf
}

// counter parses a counter. It returns nil if the counter has a mistake.
func (p *parser) counter(sum bool, obj jsonNode) *Counter {
	c := &Counter{Sum: sum, ActionType: "*"}
	if obj.kind != '{' {
		p.add(obj.at, "want an object, got %s: %s", obj.describe(), counterForm)
		return nil
	}
	ok := true
	for _, m := range obj.members {
		if err := p.counterMember(c, m); err != nil {
			p.Add(Mistake{At: m.value.at, Message: err.Error()})
			ok = false
		}
	}
	switch {
	case !ok:
		return nil
	case c.Window == 0:
		p.add(obj.at, `the counter has no "window" such as "1h": %s`, counterForm)
		return nil
	case sum && c.Currency == "":
		p.add(obj.at, `the sum has no "currency" such as "EUR": amounts of different currencies do not add up`)
		return nil
	}
	var err error
	if c.actions, err = glob.CompileDenied([]string{c.ActionType}); err != nil {
		p.add(obj.at, "%v", err)
		return nil
	}
	c.Key = c.counterKey()
	return c
}

func (p *parser) counterMember(c *Counter, m jsonMember) (err error) {
	v := m.value
	switch {
	case m.name == "by":
		return c.setBy(v)
	case m.name == "window" && v.kind == '"':
		c.Window, err = parseWindow(v.text)
		return err
	case m.name == "action_type" && v.kind == '"':
		c.ActionType = v.text
		return p.patterns.glob(ActionGlob, v.text)
	case m.name == "field" && c.Sum && v.kind == '"' && v.text == fields[CostAmount].name:
		return nil
	case m.name == "field" && c.Sum:
		return fmt.Errorf("only %q can be added up", fields[CostAmount].name)
	case m.name == "currency" && c.Sum && v.kind == '"':
		c.Currency = v.text
		return admitsCurrency(v.text)
	case slices.Contains([]string{"window", "action_type", "currency"}, m.name) && v.kind != '"':
		return fmt.Errorf("want a string, got %s", v.describe())
	}
	return fmt.Errorf("unknown member %q of a counter: %s", m.name, counterForm)
}

// setBy sets the group of intents that c counts, from the member "by".
func (c *Counter) setBy(v jsonNode) error {
	if v.kind != '[' {
		return fmt.Errorf(
			`want a list of "agent_id" and "session_id", or an empty one for all of the organization, got %s`,
			v.describe(),
		)
	}
	for _, item := range v.items {
		switch {
		case item.kind == '"' && item.text == "agent_id":
			c.ByAgent = true
		case item.kind == '"' && item.text == "session_id":
			c.BySession = true
		default:
			return fmt.Errorf(`want "agent_id" or "session_id", got %s`, item.describe())
		}
	}
	return nil
}

// The shortest and the longest window of a counter. The history is kept for at least a week.
const (
	shortestWindow = time.Minute
	longestWindow  = 7 * 24 * time.Hour
)

// parseWindow reads a number with a unit, such as 90m. The units are seconds, minutes, hours and
// days.
func parseWindow(s string) (time.Duration, error) {
	units := map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour}
	if len(s) > 1 && len(s) < 8 {
		n, err := strconv.ParseUint(s[:len(s)-1], 10, 32)
		if unit := units[s[len(s)-1]]; err == nil && unit > 0 {
			if w := time.Duration(n) * unit; w >= shortestWindow && w <= longestWindow {
				return w, nil
			}
		}
	}
	return 0, fmt.Errorf(
		`want a window between 60s and 7d, in seconds, minutes, hours or days such as "90s", "90m", "24h" or "7d", got %q`, s,
	)
}

// Saturated returns the sum of two counts, but at most [MaxInteger].
func Saturated(a, b int64) int64 { return min(a+b, MaxInteger) }
