package embedded

import "time"

// progressEvery is how often progress is logged.
const progressEvery = 5 * time.Second

// progress logs or shows how much of a long step of Open is done, so that an operator sees that
// Open goes on.
type progress struct {
	*health
	step string
	of   uint64
	next time.Time
	n    int
}

// begin begins a step. It is done when tell is called with of.
func (h *health) begin(step string, of uint64) *progress {
	p := &progress{health: h, step: step, of: of, next: time.Now().Add(progressEvery)}
	p.end()
	h.log.Info(step)
	return p
}

// tell says how much of the step is done. It logs or shows only some of its calls.
func (p *progress) tell(done uint64) {
	if p.n++; p.n%256 != 1 {
		return
	}
	if p.show != nil {
		p.show(p.step, done, p.of)
	} else if time.Now().After(p.next) {
		p.next = time.Now().Add(progressEvery)
		p.log.Info(p.step, "done", done, "of", p.of, "percent", 100*done/p.of)
	}
}

// end ends the display of progress. It is called before a message is logged.
func (p *progress) end() {
	if p.show != nil {
		p.show("", 0, 0)
	}
}
