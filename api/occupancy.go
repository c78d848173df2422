package api

import (
	"net"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// occupancy bounds the open connections of one address, so that nobody takes
// all that the server has. A trusted proxy's are as many as it likes: they are
// its callers'.
type occupancy struct {
	most    int
	exempt  proxies
	refused prometheus.Counter

	mu   sync.Mutex
	open map[address]int // of those that have any
}

func newOccupancy(most int, exempt proxies, reg prometheus.Registerer) *occupancy {
	o := &occupancy{most: most, exempt: exempt, open: make(map[address]int), refused: prometheus.NewCounter(prometheus.CounterOpts{
		Name: "writ_http_connections_refused_total", Help: "Connections closed at once because their address had too many.",
	})}
	reg.MustRegister(o.refused)
	return o
}

// enter counts a connection and returns what uncounts it, or false if its
// address has too many.
func (o *occupancy) enter(c net.Conn) (leave func(), ok bool) {
	at := socketAddr(c.RemoteAddr())
	if o.exempt.trust(at) {
		return func() {}, true
	}
	a := addressOf(at)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.open[a] >= o.most {
		o.refused.Inc()
		return nil, false
	}
	o.open[a]++
	return func() { o.leave(a) }, true
}

func (o *occupancy) leave(a address) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.open[a]--; o.open[a] == 0 {
		delete(o.open, a)
	}
}
