package webhook

import (
	"cmp"
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"writ.example/writ/storage"
)

// note records in t the result of a batch. It reports whether the webhook pauses. answered says
// whether any attempt got an answer.
func (d *Deliverer) note(t *target, due []*storage.Delivery, answered bool) (pauses bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	t.failing = due[len(due)-1].Problem != ""
	if answered {
		t.silent = 0
		return false
	}
	t.paused = d.cfg.Now().Add(min(firstRetry<<min(t.silent, 10), longestPause))
	t.silent++
	return true
}

// attempt sends each delivery in due once, several at a time. It stores the result in the
// delivery, and reports whether any attempt got an answer.
func (d *Deliverer) attempt(ctx context.Context, w *storage.Webhook, due []*storage.Delivery) (answered bool) {
	var all sync.WaitGroup
	next := make(chan *storage.Delivery)
	for range min(maxConnections, len(due)) {
		all.Go(func() {
			for v := range next {
				now := d.cfg.Now()
				v.Answer, v.Problem = d.sender.send(ctx, w, v, now)
				v.Attempts++
				outcome(v, now, d.cfg.Now())
			}
		})
	}
	for _, v := range due {
		next <- v
	}
	close(next)
	all.Wait()
	for _, v := range due {
		answered = answered || v.Answer != 0
	}
	return answered
}

// outcome sets v's status after an attempt. If v is attempted again, outcome also sets the time
// of that attempt.
func outcome(v *storage.Delivery, began, ended time.Time) {
	switch {
	case v.Problem == "":
		v.Status = storage.DeliveryDelivered
	case began.Sub(v.Since) >= giveUp:
		v.Status = storage.DeliveryDead
	default:
		v.DueAt = ended.Add(backoff(v.Attempts)).UTC().Truncate(time.Millisecond)
	}
}

// backoff returns the time from the end of an attempt to the next attempt. attempts is 1 after
// the first attempt. The longest time doubles with each attempt. The result is random, between
// four fifths of the longest time and all of it. So many deliveries do not arrive at once.
func backoff(attempts int) time.Duration {
	d := min(firstRetry<<min(attempts-1, 20), lastRetry)
	return d - rand.N(d/5) //nolint:gosec // it is no secret
}

func (d *Deliverer) count(ended []*storage.Delivery) {
	for _, v := range ended {
		d.metrics.attempts.WithLabelValues(cmp.Or(v.Problem, delivered)).Inc()
		if v.Status == storage.DeliveryDead {
			d.metrics.dead.Inc()
		}
	}
}
