package index

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestPacer(t *testing.T) {
	for _, tt := range []struct {
		name        string
		work        time.Duration // the duration of 64 steps
		hurry       bool
		want, wantN time.Duration // how long the first 64 steps and the next 64 steps take
	}{
		{"rests four times as long as it worked", time.Millisecond, false, time.Millisecond, 5 * time.Millisecond},
		{"does not rest after little work", workTime / 4, false, workTime / 4, workTime / 4},
		{"does not rest when it is late", time.Millisecond, true, time.Millisecond, time.Millisecond},
		{"does not rest long after a long step", time.Second, false, time.Second, time.Second + restTimes*10*workTime},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &pacer{hurry: func() bool { return tt.hurry }}
				steps := func() time.Duration {
					began := time.Now()
					time.Sleep(tt.work)
					for range stepsTimed {
						p.step()
					}
					return time.Since(began)
				}
				if got := steps(); got != tt.want { // the pacer first reads the clock after these steps
					t.Errorf("the first steps took %v, want %v", got, tt.want)
				}
				if got := steps(); got != tt.wantN {
					t.Errorf("the next steps took %v, want %v", got, tt.wantN)
				}
			})
		})
	}
	var none *pacer
	none.step() // never rests
}
