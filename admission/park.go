package admission

import "sync"

// Park admits a request that waits for something else than a slot, such as a person, until
// unpark is called, however it ends; calling that again does nothing. It refuses with QueueFull
// as a queue for slots does, and counts apart from these, so that whoever waits for a person
// takes no place of a decision.
func (g *Gate) Park(org string) (unpark func(), v Verdict) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !room(g.parked[org], g.parkedInAll) {
		g.metrics.rejected[QueueFull].Inc()
		return func() {}, QueueFull
	}
	g.parked[org]++
	g.parkedInAll++
	return sync.OnceFunc(func() { g.unpark(org) }), Admitted
}

func (g *Gate) unpark(org string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.parkedInAll--
	if g.parked[org]--; g.parked[org] == 0 {
		delete(g.parked, org)
	}
}
