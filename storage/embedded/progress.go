package embedded

import (
	"log/slog"
	"time"
)

// progressEvery is how often progress is logged.
const progressEvery = 5 * time.Second

// progress logs how far a long step at the start has come, so that an operator sees that it
// goes on.
type progress struct {
	log  *slog.Logger
	step string
	of   uint64
	next time.Time
	n    int
}

// begin begins a step.
func (p *progress) begin(step string) {
	p.step, p.n, p.next = step, 0, time.Now().Add(progressEvery)
	p.log.Info(step)
}

// tell says what of the step is done, of p.of, which is 0 if that is not known.
func (p *progress) tell(done uint64) {
	if p.n++; p.n%256 != 0 || time.Now().Before(p.next) {
		return
	}
	p.next = time.Now().Add(progressEvery)
	if p.of == 0 {
		p.log.Info(p.step, "done", done)
		return
	}
	p.log.Info(p.step, "done", done, "of", p.of, "percent", 100*done/p.of)
}
