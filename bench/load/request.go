package load

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync/atomic"
	"time"
)

// Message is what a request says of one intent.
type Message struct {
	Body   []byte  // JSON with placeholders
	Weight float64 // how often it is drawn beside the others
	// Want is the decision that the intent must get; empty: any. It holds for a target with Decides.
	Want string
	Name string // names the intent where it is not decided as wanted
}

// want is the decision that an intent must get. It is empty if any will do.
type want struct{ decision, name string }

// form is a text with placeholders. Each use is written over the last one.
type form struct {
	text                          []byte
	want                          want
	ids, policies, numbers, times [][]byte // parts of text
}

func newForm(text []byte, w want) *form {
	f := &form{text: bytes.Clone(text), want: w}
	f.ids, f.policies = within(f.text, IntentID), within(f.text, PolicyID)
	f.numbers, f.times = within(f.text, strconv.Itoa(Number)), within(f.text, Time)
	return f
}

// within returns the parts of request that hold text.
func within(request []byte, text string) (places [][]byte) {
	for rest := request; ; {
		i := bytes.Index(rest, []byte(text))
		if i < 0 {
			return places
		}
		places = append(places, rest[i:i+len(text)])
		rest = rest[i+len(text):]
	}
}

// composer writes requests.
type composer struct {
	target *Target
	forms  []*form
	sums   []float64     // sums[i] is the weight of the forms up to i
	sent   *atomic.Int64 // the last number that was sent
	random *rand.ChaCha8
}

func newComposer(t *Target, sent *atomic.Int64) composer {
	c := composer{target: t, sent: sent}
	messages := t.Messages
	if len(messages) == 0 && t.Body != nil {
		messages = []Message{{Body: t.Body, Weight: 1}}
	}
	sum := 0.0
	for _, m := range messages {
		sum += m.Weight
		c.forms, c.sums = append(c.forms, newForm(m.Body, want{m.Want, m.Name})), append(c.sums, sum)
	}
	var seed [32]byte
	for i := range 4 {
		binary.LittleEndian.PutUint64(seed[8*i:], rand.Uint64())
	}
	c.random = rand.NewChaCha8(seed)
	return c
}

// draw returns a form at random, by the weights.
func (c *composer) draw() *form {
	if len(c.forms) == 1 {
		return c.forms[0]
	}
	at := float64(c.random.Uint64()>>11) / (1 << 53) * c.sums[len(c.sums)-1]
	i, exact := slices.BinarySearch(c.sums, at)
	if exact {
		i++
	}
	return c.forms[min(i, len(c.forms)-1)]
}

// caller returns one of callers at random, or the next one, or nil.
func (c *composer) caller(callers []Caller) *Caller {
	switch n := len(callers); {
	case n == 0:
		return nil
	case n == 1:
		return &callers[0]
	case c.target.InTurn:
		return &callers[(c.sent.Add(1)-1)%int64(n)]
	default:
		return &callers[c.random.Uint64()%uint64(n)]
	}
}

// fill writes new values over the placeholders of f.
func (c *composer) fill(f *form, by *Caller) {
	if by != nil {
		for _, id := range f.policies {
			copy(id, by.PolicyID)
		}
	}
	for _, id := range f.ids {
		writeUUID(id, c.random)
	}
	if len(f.numbers) > 0 {
		n := strconv.FormatInt(c.sent.Add(1)+Number, 10)
		for _, number := range f.numbers {
			copy(number, n)
		}
	}
	if len(f.times) > 0 {
		now := time.Now().UTC().Format(time.RFC3339)
		for _, at := range f.times {
			copy(at, now)
		}
	}
}

// body appends the body of a request to dst, and the decisions that its intents must get to wants.
func (c *composer) body(dst []byte, wants []want, by *Caller) ([]byte, []want) {
	n := 1
	if len(c.target.Messages) > 0 {
		n = max(1, c.target.Intents)
	}
	dst = append(dst, c.target.Before...)
	for i := range n {
		if i > 0 {
			dst = append(dst, ',')
		}
		f := c.draw()
		c.fill(f, by)
		dst, wants = append(dst, f.text...), append(wants, f.want)
	}
	return append(dst, c.target.After...), wants
}

// writeUUID writes a random UUID of version 4.
func writeUUID(to []byte, random *rand.ChaCha8) {
	var u [16]byte
	binary.LittleEndian.PutUint64(u[:8], random.Uint64())
	binary.LittleEndian.PutUint64(u[8:], random.Uint64())
	u[6] = u[6]&0x0f | 0x40
	u[8] = u[8]&0x3f | 0x80
	hex.Encode(to[0:8], u[0:4])
	hex.Encode(to[9:13], u[4:6])
	hex.Encode(to[14:18], u[6:8])
	hex.Encode(to[19:23], u[8:10])
	hex.Encode(to[24:36], u[10:16])
}
