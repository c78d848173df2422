package api

import (
	"net"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"writ/telemetry"
)

// connectionLimit bounds the open connections of one address, so that no address
// takes all connections of the server. Trusted proxies are exempt: their connections
// are their callers'.
type connectionLimit struct {
	most    int
	exempt  proxies
	refused prometheus.Counter

	mu   sync.Mutex
	open map[address]int // connections, never 0
}

func newConnectionLimit(most int, exempt proxies, reg prometheus.Registerer) *connectionLimit {
	refused := telemetry.Counter("writ_http_connections_refused_total", "Connections closed at once because their address had too many.")
	l := &connectionLimit{most: most, exempt: exempt, open: make(map[address]int), refused: refused}
	reg.MustRegister(l.refused)
	return l
}

// enter counts a connection, and returns false if its address has too many. The
// caller calls leave when the connection is closed.
func (l *connectionLimit) enter(c net.Conn) (leave func(), ok bool) {
	at := socketAddr(c.RemoteAddr())
	if l.exempt.trust(at) {
		return func() {}, true
	}
	a := addressOf(at)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[a] >= l.most {
		l.refused.Inc()
		return nil, false
	}
	l.open[a]++
	return func() { l.leave(a) }, true
}

func (l *connectionLimit) leave(a address) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[a]--; l.open[a] == 0 {
		delete(l.open, a)
	}
}
