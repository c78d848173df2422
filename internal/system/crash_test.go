package system

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestCrash kills the real binary under load many times, and compares all answers with the history.
// Every receipt must verify and be in the history, in an unbroken chain. No intent may have two
// decisions. The meters must equal the number of distinct intents.
func TestCrash(t *testing.T) {
	kills := rounds(3, 20)
	data, token := newData(t)
	plans := manyEvaluations(t)
	p := start(t, data, plans)
	register(t, p.url, token)

	l := newLoad(t, token)
	l.serve(p.url)
	workers := l.start(crashWorkers)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range kills {
		l.awaitAnswers(t, rng.IntN(2*crashAnswers))
		p.kill(t)
		if i%4 == 2 { // a second crash, during recovery from the first
			dying, ready := launch(t, data, plans)
			select {
			case <-ready:
			case <-time.After(time.Duration(rng.IntN(60)) * time.Millisecond):
			}
			dying.kill(t)
		}
		p = start(t, data, plans)
		l.serve(p.url)
	}
	l.awaitAnswers(t, crashAnswers)
	l.stop()
	workers.Wait()
	t.Logf("%d kills: %d intents, of which %d got no answer", kills, len(l.sent), len(l.sent)-len(l.answers))

	l.resend(t, p.url)
	rows := history(t, p.url, token)
	l.auditIntents(t, rows)
	p.stop(t)
	auditAnswers(t, data, l.answers, rows)
	auditStore(t, data, rows)
}
