package load

import (
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Manner is a way to misuse a stream of intents.
type Manner string

// The manners of a hostile load.
const (
	Fill    Manner = "fill"    // sends as fast as the window allows, and ignores refusals
	Stall   Manner = "stall"   // sends the start of a message and then nothing
	Dribble Manner = "dribble" // sends each byte alone
	Deaf    Manner = "deaf"    // sends without an end and never reads an answer
)

// writer returns what passes the bytes of a stream on to its connection.
func (m Manner) writer(c io.Writer) io.Writer {
	switch m {
	case Stall:
		return &start{Writer: c}
	case Dribble:
		return dribble{c}
	default:
		return c
	}
}

// startBytes is less than the shortest message has.
const startBytes = 16

// start passes on the first bytes of a message and nothing after them.
type start struct {
	io.Writer
	sent bool
}

func (s *start) Write(p []byte) (int, error) {
	if s.sent {
		return len(p), nil
	}
	s.sent = true
	_, err := s.Writer.Write(p[:min(len(p)/2, startBytes)])
	return len(p), err
}

// dribble passes on each byte in a write of its own.
type dribble struct{ io.Writer }

func (d dribble) Write(p []byte) (int, error) {
	for i := range p {
		if _, err := d.Writer.Write(p[i : i+1]); err != nil {
			return i, err
		}
	}
	return len(p), nil
}

// abuser opens one stream after the other and misuses each until it ends. Each stream counts as an answer with the
// status 101.
type abuser struct {
	target *Target
	sent   *atomic.Int64

	mu     sync.Mutex
	conn   net.Conn // of the stream that is open, or nil
	closed bool
}

// run implements lane. It fails only if no further stream can be opened.
func (a *abuser) run(s *schedule, r *Result) error {
	for time.Now().Before(s.end) {
		began := time.Now()
		c, err := dialStream(s.ctx, a.target, a.sent)
		if err != nil {
			return err
		}
		a.hold(c.net.Conn)
		_ = c.net.SetDeadline(s.end.Add(time.Second)) // the connection is open, so this does not fail
		c.net.through(a.target.Manner.writer(c.net.Conn))
		r.took(answer{status: http.StatusSwitchingProtocols}, time.Now(), began, began)
		if c.run(s, r) != nil && time.Now().Before(s.end) {
			r.dropped()
		}
		_ = c.net.Close() // it hangs up
	}
	return nil
}

// hold keeps the connection that close closes.
func (a *abuser) hold(c net.Conn) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.conn = c; a.closed {
		_ = c.Close()
	}
}

// close implements lane.
func (a *abuser) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	if a.conn != nil {
		_ = a.conn.Close()
	}
}
