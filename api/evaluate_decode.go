package api

import (
	"strings"
	"unicode/utf8"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
	"writ.example/writ/storage/receipt"
)

// decodeEvaluate reads the body of an evaluation. Nearly all bodies are plain JSON, without escapes
// or large numbers. A fast path reads a plain body in one pass; engine.Decode reads every other
// body. For every body that the fast path accepts, engine.Decode gives the same result.
// FuzzDecodeEvaluate checks this.
//
// The strings from the fast path share one copy of the body, and so keep the whole copy in memory.
// A body longer than a string may be is therefore left to engine.Decode.
func (s *Server) decodeEvaluate(r *request, in *evaluateBody) error {
	if len(r.body) <= condition.MaxText && decodePlain(string(r.body), in) {
		return nil
	}
	*in = evaluateBody{}
	return intentEnvelope().hint(engine.Decode(r.body, "", in, func() error { return s.checkEvaluate(r, in) }))
}

// decodeBatch reads the body of a batch. It has a fast path like decodeEvaluate; FuzzDecodeBatch
// checks it. The intents of a plain body share one copy of the body. A plain body has at most
// condition.MaxText bytes for each intent.
func decodeBatch(r *request, in *batchBody) error {
	if decodePlainBatch(string(r.body), in) {
		return nil
	}
	*in = batchBody{}
	return engine.Decode(r.body, "", in, func() error { return checkBatch(r, in) })
}

// decodePlainBatch is like decodePlain, for a batch.
func decodePlainBatch(body string, in *batchBody) bool {
	c := &plainReader{s: body}
	var session string
	texts := [...]plainText{{"session_id", &session}, {"policy_id", &in.PolicyID}, {"mode", &in.Mode}}
	seen, ok := c.body(texts[:], "intents", func() bool {
		return c.list(func() bool {
			if len(in.plain) == maxBatch {
				return false
			}
			one := new(evaluateBody)
			in.plain = append(in.plain, one)
			if !c.intent(one) {
				return false
			}
			one.own()
			return true
		})
	})
	if seen&1 != 0 {
		in.SessionID = &session
	}
	return ok && len(body) <= len(in.plain)*condition.MaxText
}

// decodeIntent reads an intent of a batch into in. field is the path of the intent in the body.
func decodeIntent(raw []byte, field string, in *evaluateBody, check func() error) error {
	in.Intent = &in.intent
	if len(raw) <= condition.MaxText {
		c := &plainReader{s: string(raw)}
		if c.intent(in) && c.end() {
			in.own()
			return nil
		}
	}
	in.intent = engine.Intent{}
	return engine.Decode(raw, field, in.Intent, check)
}

// decodePlain reads body into in, and its other members into more. It returns false if body is not
// plain; then only some members are set.
func decodePlain(body string, in *evaluateBody, more ...plainText) bool {
	c := &plainReader{s: body}
	var memory [4]plainText
	texts := append(append(memory[:0], plainText{"session_id", &in.session}, plainText{"policy_id", &in.PolicyID},
		plainText{"approval_id", &in.ApprovalID}), more...)
	seen, ok := c.body(texts, "intent", func() bool { return c.intent(in) })
	if !ok || in.Intent == nil {
		return false
	}
	if seen&1 != 0 {
		in.SessionID = &in.session
	}
	in.own()
	return true
}

// own copies the ids of the policy and the agent. Caches use these ids as keys. An id that is not
// copied would keep the whole body in memory.
func (in *evaluateBody) own() {
	if in.Intent.PolicyID == in.PolicyID {
		in.Intent.PolicyID = in.PolicyID
	} else {
		in.Intent.PolicyID = strings.Clone(in.Intent.PolicyID)
	}
	in.Intent.AgentID = strings.Clone(in.Intent.AgentID)
}

// plainReader reads JSON without escapes. Its strings are parts of s.
type plainReader struct {
	s string
	i int
}

// memberSet is the set of members that were read. It detects a member that occurs twice.
type memberSet uint

func (m *memberSet) add(member int) bool {
	twice := *m&(1<<member) != 0
	*m |= 1 << member
	return !twice
}

// plainText is the name of a string member of a body, and the place for its value.
type plainText struct {
	name string
	to   *string
}

// body reads all of s, which must be one object. value reads the member called name; texts lists
// all other members. body copies these texts. Bit i of seen says that the object has the member
// texts[i].
func (c *plainReader) body(texts []plainText, name string, value func() bool) (seen memberSet, ok bool) {
	ok = c.object(func(member string) bool {
		if member == name {
			return seen.add(len(texts)) && value()
		}
		for i, t := range texts {
			if t.name == member {
				return seen.add(i) && c.text(t.to)
			}
		}
		return false
	})
	for _, t := range texts {
		*t.to = strings.Clone(*t.to)
	}
	return seen, ok && c.end()
}

func (c *plainReader) intent(body *evaluateBody) bool {
	in := &body.intent
	body.Intent = in
	var seen memberSet
	return c.object(func(name string) bool {
		switch name {
		case "cost":
			in.Cost = &body.cost
			return seen.add(int(condition.Cost)) && c.cost(in.Cost)
		case "metadata":
			in.Metadata = make(map[string]string)
			return seen.add(int(condition.Metadata)) && c.metadata(in.Metadata)
		}
		m, ok := condition.MemberNamed(name)
		return ok && seen.add(int(m.ID)) && c.text(in.Text(m.ID))
	})
}

func (c *plainReader) cost(cost *engine.Cost) bool {
	var seen memberSet
	ok := c.object(func(name string) bool {
		switch name {
		case "amount_minor":
			return seen.add(0) && c.integer(&cost.AmountMinor)
		case "currency":
			return seen.add(1) && c.text(&cost.Currency)
		}
		return false
	})
	return ok && seen == 0b11
}

func (c *plainReader) metadata(m map[string]string) bool {
	return c.object(func(name string) bool {
		if _, twice := m[name]; twice {
			return false
		}
		var value string
		ok := c.text(&value)
		m[name] = value
		return ok
	})
}

// object reads an object. It calls member at the beginning of each member's value.
func (c *plainReader) object(member func(name string) bool) bool {
	if !c.eat('{') {
		return false
	}
	if c.eat('}') {
		return true
	}
	for {
		var name string
		if !c.text(&name) || !c.eat(':') || !member(name) {
			return false
		}
		if !c.eat(',') {
			return c.eat('}')
		}
	}
}

// list reads an array. It calls element at the beginning of each element.
func (c *plainReader) list(element func() bool) bool {
	if !c.eat('[') {
		return false
	}
	if c.eat(']') {
		return true
	}
	for element() {
		if !c.eat(',') {
			return c.eat(']')
		}
	}
	return false
}

// text reads a string without escapes.
func (c *plainReader) text(to *string) bool {
	if !c.eat('"') {
		return false
	}
	end := strings.IndexByte(c.s[c.i:], '"')
	if end < 0 {
		return false
	}
	*to = c.s[c.i : c.i+end]
	c.i += end + 1
	return receipt.IsPlain(*to) || utf8.ValidString(*to) && strings.IndexFunc(*to, escaped) < 0
}

// escaped reports whether r is an escape in JSON or must be escaped.
func escaped(r rune) bool { return r < ' ' || r == '\\' }

// integer reads an integer of at most 15 digits, which cannot overflow.
func (c *plainReader) integer(to *int64) bool {
	c.space()
	negative := c.i < len(c.s) && c.s[c.i] == '-'
	if negative {
		c.i++
	}
	start := c.i
	var n int64
	for ; c.i < len(c.s) && '0' <= c.s[c.i] && c.s[c.i] <= '9'; c.i++ {
		if c.i-start == 15 {
			return false
		}
		n = n*10 + int64(c.s[c.i]-'0')
	}
	if c.i == start || c.s[start] == '0' && c.i-start > 1 {
		return false
	}
	if negative {
		n = -n
	}
	*to = n
	return true // a fraction or an exponent makes every caller return false
}

// eat skips white space and then reads b. It returns false if another byte comes next.
func (c *plainReader) eat(b byte) bool {
	c.space()
	if c.i < len(c.s) && c.s[c.i] == b {
		c.i++
		return true
	}
	return false
}

func (c *plainReader) space() {
	for c.i < len(c.s) {
		switch c.s[c.i] {
		case ' ', '\t', '\n', '\r':
			c.i++
		default:
			return
		}
	}
}

func (c *plainReader) end() bool {
	c.space()
	return c.i == len(c.s)
}
