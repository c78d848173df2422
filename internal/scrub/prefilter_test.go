package scrub

import (
	"math/rand/v2"
	"regexp/syntax"
	"strings"
	"testing"

	"writ.example/writ/internal/scrub/scrubtest"
)

// naive applies all rules one by one. As in gitleaks, a rule is applied if the text
// contains one of its keywords.
func naive(s *Scrubber, text string) (spans []span) {
	low := strings.ToLower(text)
	for _, r := range s.rules {
		hit := len(r.keywords) == 0
		for _, k := range r.keywords {
			hit = hit || strings.Contains(low, k)
		}
		if hit {
			spans = r.append(spans, text)
		}
	}
	return spans
}

func checkSuspect(t *testing.T, s *Scrubber, text string) {
	t.Helper()
	for _, r := range s.rules {
		if r.possible != nil && !r.possible(text) && r.compile().MatchString(text) {
			t.Errorf("%s matches %q, but is held impossible", r.kind, text)
		}
	}
	found := naive(s, text)
	if len(found) == 0 {
		return
	}
	h := s.prefilter.scan(text)
	for _, sp := range found {
		missed := true
		for i, r := range s.rules {
			missed = missed && (r.kind != sp.kind || !h.rules.has(i))
		}
		if missed {
			t.Errorf("the prefilter skips %s, which matches %q", sp.kind, text)
		}
	}
}

func TestSuspect_HasNoFalseNegatives(t *testing.T) {
	s := newScrubber(t)
	r := rand.New(rand.NewPCG(1, 2))
	for _, rule := range s.rules {
		if rule.scan != nil {
			continue
		}
		tree, err := syntax.Parse(rule.compile().String(), syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		matched := 0
		for range 25 {
			text := generate(r, tree)
			if rule.compile().MatchString(text) {
				matched++
			}
			checkSuspect(t, s, text)
			checkSuspect(t, s, "x/"+text+"/y")
			for _, k := range rule.keywords {
				checkSuspect(t, s, k+" "+text)
			}
		}
		if matched == 0 {
			t.Errorf("no generated text matches the rule %s: the test shows nothing about it", rule.kind)
		}
	}
	for seed := range uint64(2) {
		for _, c := range scrubtest.Canaries(seed) {
			for _, text := range spellings(c.Value) {
				checkSuspect(t, s, text)
			}
		}
	}
}

func FuzzSuspect(f *testing.F) {
	s := newScrubber(f)
	for _, c := range scrubtest.Canaries(1) {
		f.Add(c.Value)
	}
	f.Add("api_key = fG8sK2lPq9Zx7Wv3Nb1Tm5Yc")
	f.Fuzz(func(t *testing.T, text string) {
		checkSuspect(t, s, text)
		pair, whole := s.prefilter.scanPair("key", text), s.prefilter.scan(`key = "`+text+`"`)
		if whole.encoded = false; pair != whole {
			t.Errorf("scanPair(key, %q) = %v, scan of the pair = %v", text, pair, whole)
		}
	})
}

// generate returns a text that the expression matches. It ignores conditions on the text
// around it.
func generate(r *rand.Rand, re *syntax.Regexp) string {
	var b strings.Builder
	appendMatch(&b, r, re)
	return b.String()
}

func appendMatch(b *strings.Builder, r *rand.Rand, re *syntax.Regexp) {
	times := func(low, high int) {
		for range low + r.IntN(high-low+1) {
			appendMatch(b, r, re.Sub[0])
		}
	}
	switch re.Op {
	case syntax.OpLiteral:
		for _, c := range re.Rune {
			if re.Flags&syntax.FoldCase != 0 && r.IntN(2) == 0 {
				c = []rune(strings.ToLower(string(c)))[0]
			}
			b.WriteRune(c)
		}
	case syntax.OpCharClass:
		b.WriteRune(pick(r, re.Rune))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		b.WriteByte("aZ0/ =-"[r.IntN(7)])
	case syntax.OpCapture:
		appendMatch(b, r, re.Sub[0])
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			appendMatch(b, r, sub)
		}
	case syntax.OpAlternate:
		appendMatch(b, r, re.Sub[r.IntN(len(re.Sub))])
	case syntax.OpQuest:
		times(0, 1)
	case syntax.OpStar:
		times(0, 3)
	case syntax.OpPlus:
		times(1, 3)
	case syntax.OpRepeat:
		high := re.Max
		if high < 0 || high > re.Min+3 {
			high = re.Min + 3
		}
		times(re.Min, high)
	}
}

// pick returns an ASCII character of a class, given as ranges, if it has one.
func pick(r *rand.Rand, ranges []rune) rune {
	var all []rune
	for i := 0; i < len(ranges); i += 2 {
		for c := max(ranges[i], ' '); c <= min(ranges[i+1], '~'); c++ {
			all = append(all, c)
		}
	}
	if len(all) == 0 {
		return ranges[0]
	}
	return all[r.IntN(len(all))]
}
