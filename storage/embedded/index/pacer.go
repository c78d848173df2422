package index

import "time"

// pacer makes background work rest most of the time, so that the work delays few requests. A nil
// pacer never rests.
type pacer struct {
	// hurry reports that the work is late. Late work does not rest.
	hurry func() bool
	steps int
	began time.Time // when the first step after the last rest began
}

const (
	// workTime is how long the work goes on before a rest. It is less than a commit takes.
	workTime = 200 * time.Microsecond
	// restTimes is the duration of a rest divided by the duration of the work before it.
	restTimes = 4
	// stepsTimed is the number of steps between two readings of the clock.
	stepsTimed = 64
)

// step is called after each small part of the work.
func (p *pacer) step() {
	if p == nil {
		return
	}
	if p.steps++; p.steps%stepsTimed != 0 {
		return
	}
	now := time.Now()
	if p.began.IsZero() {
		p.began = now
	}
	if worked := now.Sub(p.began); worked >= workTime && !p.hurry() {
		time.Sleep(restTimes * min(worked, 10*workTime))
		p.began = time.Now()
	}
}
