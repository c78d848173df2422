package embedded

import (
	"log/slog"
	"time"
)

// progressEvery is how often progress is logged.
const progressEvery = 5 * time.Second

// progress logs or shows how far a long step at the start has come, so that an operator sees
// that it goes on.
type progress struct {
	log  *slog.Logger
	show func(step string, done, of uint64) // see [Options]
	step string
	of   uint64
	next time.Time
	n    int
}

// progress returns that of a store that is being opened.
func (h *health) progress(of uint64) progress {
	return progress{log: h.log, show: h.show, of: of}
}

// begin begins a step.
func (p *progress) begin(step string) {
	p.end()
	p.step, p.n, p.next = step, 0, time.Now().Add(progressEvery)
	p.log.Info(step)
}

// tell says what of the step is done, of p.of.
func (p *progress) tell(done uint64) {
	if p.n++; p.n%256 != 1 {
		return
	}
	if p.show != nil {
		p.show(p.step, done, p.of)
		return
	}
	if time.Now().Before(p.next) {
		return
	}
	p.next = time.Now().Add(progressEvery)
	p.log.Info(p.step, "done", done, "of", p.of, "percent", 100*done/p.of)
}

// end ends what is shown, before something is logged.
func (p *progress) end() {
	if p.show != nil {
		p.show("", 0, 0)
	}
}
