package engine

// Verdict is what a rule said of an intent.
type Verdict uint8

// The verdicts. Rules below the one that decided are not asked.
const (
	NotAsked Verdict = iota
	NotMatched
	Matched
	Failed
)

// String returns the verdict in words.
func (v Verdict) String() string {
	return [...]string{"not asked", "no match", "matches", "error"}[v]
}

// Asked is a rule and what it said of an intent. Err is set where the verdict is
// Failed: that counts as a match unless the rule allows.
type Asked struct {
	Rule    *CompiledRule
	Verdict Verdict
	Err     *ConditionError
}

// Explain is [Evaluate], and also says of each rule of rs, in deciding order, what
// came of it.
func Explain(p *Policy, rs *RuleSet, in *Input) (Result, []Asked) {
	if rs == nil {
		return Evaluate(p, rs, in), nil
	}
	asked := make([]Asked, len(rs.rules))
	for i, r := range rs.rules {
		asked[i].Rule = r
	}
	return evaluate(p, rs, in, asked), asked
}

// note records what the rule at i said, if somebody wants to know.
func (f *frame) note(i int, matched bool, err error) {
	f.noteUpTo(i)
	switch {
	case f.asked == nil:
	case err != nil:
		f.asked[i].Verdict, f.asked[i].Err = Failed, diagnose(err)
	case matched:
		f.asked[i].Verdict = Matched
	default:
		f.asked[i].Verdict = NotMatched
	}
}

// noteUpTo records that those of the rules before i of which nothing is recorded do
// not match: the index has ruled them out.
func (f *frame) noteUpTo(i int) {
	if f.asked == nil {
		return
	}
	for ; i > 0 && f.asked[i-1].Verdict == NotAsked; i-- {
		f.asked[i-1].Verdict = NotMatched
	}
}
