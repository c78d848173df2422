package engine

import (
	"math/bits"
	"slices"

	"writ.example/writ/engine/condition"
	"writ.example/writ/engine/resource"
)

// decide returns the findings of the rules, nil if no rule matches. It also counts the conditions
// that were an error. Rules are evaluated in deciding order until one matches. Later rules are not
// evaluated, so their errors do not count.
//
// If a rule asks for approval because its condition is an error, the rules below it are evaluated
// too, and their deny wins. Otherwise the caller could lift that deny by leaving out a field that
// the condition reads. In this case both findings are reported.
//
// If the request ends while a condition is running, decide stops and sets e.ended to its rule.
//
// When decide returns, the frame's resource is again the text as written. The slice is shared and
// must not be modified. A nil set has no rules.
func (rs *RuleSet) decide(e *evaluation) (_ []Finding, failed condition.CauseCounts) {
	if rs == nil || len(rs.rules) == 0 {
		return nil, failed
	}
	var buffer bitsetBuffer
	candidates := rs.index.candidates(e.Frame, buffer.sized(len(rs.rules)))
	var unsure []Finding // of the first rule that asks for approval because of an error
	e.Work = condition.NewWork(e.in.Turn, e.in.Ended)
	e.lists = rs.lists
	e.SetLists(rs.lists)
	for i := candidates.next(0); i >= 0; i = candidates.next(i + 1) {
		rule := rs.rules[i]
		finding, err := rule.decide(e)
		if e.Work.Ended() {
			e.ended = rule
			return nil, failed
		}
		if err != nil {
			failed[condition.CauseOf(err)]++
		}
		if e.in.Trace != nil {
			e.in.Trace.ruled(i, finding != nil, err)
		}
		switch {
		case finding == nil:
		case unsure == nil && (err == nil || rule.outcome == Deny):
			return finding, failed
		case unsure == nil:
			unsure = finding
		case rule.outcome == Deny:
			return slices.Concat(unsure, finding), failed
		case err == nil:
			return unsure, failed
		}
	}
	if e.in.Trace != nil {
		e.in.Trace.ruledOut(len(rs.rules))
	}
	return unsure, failed
}

// decide returns the rule's findings, or nil if the rule does not match.
func (c *CompiledRule) decide(e *evaluation) ([]Finding, error) {
	ok, err := c.matches(e)
	switch {
	case err != nil && c.outcome != Allow:
		return c.undecided(err), err
	case err == nil && ok && c.speaks:
		return c.spoken(e), nil
	case err == nil && ok:
		return c.finding, nil
	}
	return nil, err
}

// spoken returns the rule's finding, and one for each message of its condition. The condition was last
// asked about e.rego, unless there was no reading to ask about. Messages have a budget of steps of
// their own, so that they change no decision.
func (c *CompiledRule) spoken(e *evaluation) []Finding {
	if c.readsResource && e.Readings().Len(c.outcome.Side()) == 0 {
		return c.finding
	}
	var kept *Intent
	if e.in.Keep != nil {
		if kept = e.in.Keep.Intent(e.in.Intent, e.in.AgentNames()); kept == nil {
			return c.finding
		}
	}
	e.Work = condition.NewWork(e.in.Turn, e.in.Ended)
	findings := slices.Clone(c.finding)
	for _, message := range c.rego.Messages(e.rego, kept) {
		f := c.finding[0]
		if f.Reason = c.Reason(message); e.in.Keep != nil {
			f.Reason = e.in.Keep.Text(f.Reason)
		}
		if !slices.Contains(findings, f) {
			findings = append(findings, f)
		}
	}
	return findings
}

// undecided returns the rule's findings if its condition could not be evaluated because of err.
func (c *CompiledRule) undecided(err error) []Finding {
	why, f := condition.Diagnose(err), c.errored()
	f.Cause, f.Field = why.Cause.String(), why.Field
	if why.IsFilling() {
		f.Reason = c.Reason(why.Error())
	}
	return []Finding{f}
}

// matches evaluates the condition. Unless the rule allows, a condition in CEL that reads the agent,
// or one in Rego, is evaluated once for each name of the agent, and one name is enough.
func (c *CompiledRule) matches(e *evaluation) (bool, error) {
	names := e.Names().Called()
	if !c.readsAgent || len(names) == 1 {
		return c.matchesOne(e)
	}
	defer e.SetAgent(names[0])
	var failed error
	for _, name := range names {
		e.SetAgent(name)
		ok, err := c.matchesOne(e)
		if (err != nil || ok) && e.in.Trace != nil {
			e.in.Trace.called(name)
		}
		switch {
		case err == nil && ok:
			return true, nil
		case err != nil:
			failed = err
		}
	}
	return false, failed
}

// matchesOne evaluates the condition for the current name of the agent. A condition in CEL or Rego
// that reads the resource is evaluated once for each reading. A rule that allows must match every
// reading of an allowance. For any other rule one matching reading of a block is enough. matchesOne
// stops at the first reading that decides or is an error. In match objects and trees each comparison
// reads the resource by itself.
func (c *CompiledRule) matchesOne(e *evaluation) (bool, error) {
	if !c.readsResource {
		return c.ask(e)
	}
	side := c.outcome.Side()
	defer e.SetReading(e.Reading())
	decides := side == resource.ForBlock
	var failed error
	for i := range e.Readings().Len(side) {
		e.SetReading(e.Readings().At(side, i))
		ok, err := c.ask(e)
		if (err != nil || ok == decides) && e.in.Trace != nil {
			e.in.Trace.read(e)
		}
		switch {
		case err == nil && ok == decides:
			return decides, nil
		case err != nil && !decides:
			return false, err
		case err != nil:
			failed = err
		}
	}
	return !decides, failed
}

// ask evaluates the condition for the intent and the current reading of its resource.
func (c *CompiledRule) ask(e *evaluation) (bool, error) {
	switch {
	case c.cond.Program != nil:
		return c.cond.Program.Eval(e.Frame)
	case c.rego != nil:
		return c.rego.Match(e.regoInput())
	}
	return false, condition.ErrBroken
}

// regoInput returns the input of conditions in Rego. The conditions of one evaluation share it while the
// current name of the agent and the current reading stay the same.
func (e *evaluation) regoInput() *RegoInput {
	agent, _ := e.Text(condition.AgentID)
	text := e.Reading().Text
	if e.rego == nil || e.rego.AgentID != agent || e.rego.Resource != text {
		e.rego = &RegoInput{
			Intent: e.in.Intent, DecidedAt: e.in.DecidedAt, AgentID: agent,
			Agent: e.in.Agent, Policy: e.policy,
			Resource: text,
			Lists:    e.lists,
			Work:     &e.Work,
			Document: new(any),
		}
	}
	return e.rego
}

// candidates adds every rule that can match the intent or be an error to set, which must be empty.
func (x *ruleIndex) candidates(f *condition.Frame, set bitset) bitset {
	copy(set, x.always)
	for i := range x.fields {
		switch id := x.fields[i].id; id {
		case condition.AgentNames:
			x.fields[i].addAll(set, f.Names().Forms())
		case condition.AgentName:
			x.fields[i].addAll(set, f.Names().Called())
		default:
			value, ok := f.Text(id)
			x.fields[i].add(set, value, ok)
		}
	}
	if len(x.keys) > 0 {
		x.addMetadata(f.Metadata(), set)
	}
	if x.resources.used {
		for i := range f.Readings().Len(resource.ForBlock) {
			x.resources.add(set, f.Readings().At(resource.ForBlock, i).Text)
		}
		if x.resources.allows && f.Readings().Len(resource.ForAllow) > 0 { // it must hold for each of them
			x.resources.add(set, f.Readings().At(resource.ForAllow, 0).Text)
		}
	}
	return set
}

func (x *ruleIndex) addMetadata(metadata map[string]string, set bitset) {
	for key, value := range metadata {
		if v := x.keys[key]; v != nil {
			v.add(set, value, true)
		}
	}
	for _, key := range x.absent {
		if _, ok := metadata[key]; !ok {
			set.addAll(x.keys[key].absent)
		}
	}
}

func (v *valueIndex) add(set bitset, value string, ok bool) {
	if !ok {
		set.addAll(v.absent)
		return
	}
	set.addAll(v.values[value])
	v.prefixes.add(set, value)
}

func (v *valueIndex) addAll(set bitset, values []string) {
	for _, value := range values {
		v.add(set, value, true)
	}
}

func (x *prefixIndex) add(set bitset, value string) {
	for _, n := range x.lengths {
		if n > len(value) {
			return
		}
		set.addAll(x.rules[value[:n]])
	}
}

func (x *resourceIndex) add(set bitset, resource string) {
	set.addAll(x.exact[resource])
	x.prefixes.add(set, resource)
	if len(x.within) == 0 {
		return
	}
	slashes := 0
	for i := 0; i < len(resource) && slashes < condition.MaxDirectories; i++ {
		if resource[i] == '/' {
			slashes++
			set.addAll(x.within[resource[:i+1]])
		}
	}
}

// bitset is a set of rules. A rule's index is its place in the deciding order.
type bitset []uint64

// bitsetBuffer is memory on the stack for a bitset of up to 4,096 rules.
type bitsetBuffer [64]uint64

// sized returns an empty bitset for n rules. It uses the buffer if the bitset fits.
func (b *bitsetBuffer) sized(n int) bitset {
	words := (n + 63) / 64
	if words > len(b) {
		return make(bitset, words)
	}
	return b[:words]
}

func (b bitset) add(i int) { b[i>>6] |= 1 << (i & 63) }

func (b bitset) addAll(list []int32) {
	for _, i := range list {
		b.add(int(i))
	}
}

// next returns the least member that is at least i, or -1.
func (b bitset) next(i int) int {
	for word := i >> 6; word < len(b); word++ {
		rest := b[word]
		if word == i>>6 {
			rest &= ^uint64(0) << (i & 63)
		}
		if rest != 0 {
			return word<<6 + bits.TrailingZeros64(rest)
		}
	}
	return -1
}
