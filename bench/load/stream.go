package load

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fasthttp/websocket"
)

// stream is a connection that carries many intents at once: a WebSocket with the protocol writ.v1. The feeder sends
// an intent when a slot is free. The listener reads the answers and frees their slots.
type stream struct {
	composer
	callers []Caller // those of the credential
	socket  *websocket.Conn
	net     *buffered
	message []byte
	body    []byte
	number  uint64 // of the last message
	read    []int  // slots whose answers were read, which are not free yet
	wants   []want // room for one

	mu     sync.Mutex // guards the rest
	moved  sync.Cond  // a slot became free, or the stream failed
	slots  []slot
	free   []int
	failed error
}

// slot is an intent on its way.
type slot struct {
	schedule  *schedule
	result    *Result
	due, sent time.Time
	want      want
}

const (
	protocol    = "writ.v1"
	streamRead  = 16 << 10
	streamWrite = 64 << 10
	// A stream that has just ended may still count at the server: dialPatience says how long to wait for its place.
	dialPatience = 5 * time.Second
	dialPause    = 50 * time.Millisecond
)

func dialStream(ctx context.Context, t *Target, sent *atomic.Int64) (*stream, error) {
	c := &stream{composer: newComposer(t, sent), wants: make([]want, 1)}
	c.moved.L = &c.mu
	header := http.Header{}
	if t.Header != nil {
		header = t.Header.Clone()
	}
	if by := c.caller(t.Callers); by != nil {
		header.Set("Authorization", "Bearer "+by.Key)
		for _, other := range t.Callers {
			if other.Key == by.Key {
				c.callers = append(c.callers, other)
			}
		}
	}
	dialer := websocket.Dialer{
		TLSClientConfig: t.TLS, Subprotocols: []string{protocol},
		ReadBufferSize: streamRead, WriteBufferSize: streamRead,
		NetDialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			inner, err := t.dial(ctx)
			c.net = &buffered{Conn: inner, w: bufio.NewWriterSize(inner, streamWrite)}
			return c.net, err
		},
	}
	u := *t.URL
	u.Scheme = strings.Replace(u.Scheme, "http", "ws", 1)
	u.RawQuery = "window=" + strconv.Itoa(t.Window)
	for begun := time.Now(); ; time.Sleep(dialPause) {
		socket, resp, err := dialer.DialContext(ctx, u.String(), header) //nolint:bodyclose // it is in memory
		switch {
		case err == nil:
			c.socket = socket
			return c, c.begin()
		case resp == nil:
			return nil, err
		case resp.StatusCode != http.StatusServiceUnavailable || time.Since(begun) > dialPatience:
			body, _ := io.ReadAll(io.LimitReader(resp.Body, 300)) // the status matters
			return nil, fmt.Errorf("opening a stream: %w", statusError(answer{status: resp.StatusCode, body: body}))
		}
	}
}

// begin reads the window, and starts the listener.
func (c *stream) begin() error {
	_, text, err := c.socket.ReadMessage()
	if err != nil {
		return err
	}
	var first struct{ Window int }
	if err := json.Unmarshal(text, &first); err != nil || first.Window < 1 {
		return fmt.Errorf("a stream begins with %.300s: want its window", text)
	}
	c.slots = make([]slot, first.Window)
	for i := range c.slots {
		c.free = append(c.free, i)
	}
	c.net.idle = c.release
	if c.target.Manner != Deaf {
		go c.listen()
	}
	return nil
}

func (c *stream) close() {
	if c.socket == nil {
		return
	}
	end := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")
	_ = c.socket.WriteControl(websocket.CloseMessage, end, time.Now().Add(time.Second)) // everything has been read
	_ = c.net.flush()
	_ = c.socket.Close()
}

// run sends what the schedule says, and waits for the answers.
func (c *stream) run(s *schedule, r *Result) error {
	err := errors.Join(c.feed(s, r), c.net.flush())
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.free) < len(c.slots) && c.failed == nil && err == nil {
		c.moved.Wait()
	}
	if c.failed != nil {
		return c.failed
	}
	return err
}

func (c *stream) feed(s *schedule, r *Result) error {
	for !s.failed.Load() {
		i, err := c.take()
		if err != nil {
			return err
		}
		now := time.Now()
		due := now
		if !s.open && !s.lasts(now) {
			c.give(i)
			return nil
		}
		if s.open {
			if due = s.due(); !due.Before(s.end) {
				c.give(i)
				return nil
			}
			wait := due.Sub(now)
			if wait < -s.patience {
				r.gaveUp(-wait)
				c.give(i)
				continue
			}
			if wait > 0 {
				if err := c.net.flush(); err != nil {
					return err
				}
				time.Sleep(wait)
				r.late(time.Since(due))
			}
		}
		if err := c.send(i, slot{schedule: s, result: r, due: due, sent: time.Now()}); err != nil {
			return err
		}
		if c.target.Manner == Deaf {
			c.give(i) // its answer is never read
		}
	}
	return nil
}

// take waits for a free slot and takes it. What was sent leaves before take waits.
func (c *stream) take() (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.free) == 0 && c.failed == nil {
		c.mu.Unlock()
		err := c.net.flush()
		c.mu.Lock()
		if err != nil {
			return 0, err
		}
	}
	for len(c.free) == 0 && c.failed == nil {
		c.moved.Wait()
	}
	if c.failed != nil {
		return 0, c.failed
	}
	i := c.free[len(c.free)-1]
	c.free = c.free[:len(c.free)-1]
	return i, nil
}

// give frees slots.
func (c *stream) give(all ...int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.free = append(c.free, all...)
	c.moved.Broadcast()
}

func (c *stream) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failed == nil {
		c.failed = err
	}
	c.moved.Broadcast()
}

// send sends an intent. Its ref is the slot and the number of the message.
func (c *stream) send(i int, s slot) error {
	c.number++
	c.message = append(c.message[:0], `{"ref":"`...)
	m := strconv.AppendUint(append(strconv.AppendInt(c.message, int64(i), 10), '-'), c.number, 10)
	var room [1]want
	body, wants := c.composer.body(c.body[:0], room[:0], c.caller(c.callers))
	m = append(append(m, `",`...), body[1:]...)
	c.message, c.body, s.want = m, body, wants[0]
	c.mu.Lock()
	c.slots[i] = s
	c.mu.Unlock()
	return c.socket.WriteMessage(websocket.TextMessage, m)
}

// listen reads answers until the stream ends.
func (c *stream) listen() {
	var text bytes.Buffer
	for {
		_, r, err := c.socket.NextReader()
		if err == nil {
			text.Reset()
			_, err = text.ReadFrom(r)
		}
		if err == nil {
			err = c.answered(text.Bytes())
		}
		if err != nil {
			c.fail(err)
			return
		}
	}
}

// answered records an answer.
func (c *stream) answered(text []byte) error {
	now := time.Now()
	ref, rest, ok := bytes.Cut(bytes.TrimPrefix(text, []byte(`{"ref":"`)), []byte(`"`))
	number, _, ofSlot := bytes.Cut(ref, []byte("-"))
	i, err := strconv.Atoi(string(number))
	if !ok || !ofSlot || err != nil || i < 0 || i >= len(c.slots) {
		return fmt.Errorf("the stream says: %.300s", text)
	}
	c.mu.Lock()
	s := c.slots[i]
	c.mu.Unlock()
	if s.result == nil {
		return fmt.Errorf("an answer to no intent: %.300s", text)
	}
	a := answer{status: http.StatusOK, size: len(text), body: text}
	if bytes.HasPrefix(rest, []byte(`,"ok":true`)) {
		c.wants[0] = s.want
		err = c.target.check(&a.got, rest, c.wants)
	} else {
		var p struct {
			Status     int `json:"status"`
			RetryAfter int `json:"retry_after"`
		}
		err = json.Unmarshal(text, &p)
		a.status, a.retryAfter = p.Status, time.Duration(p.RetryAfter)*time.Second
		if err == nil && !s.schedule.hostile &&
			(a.status != http.StatusServiceUnavailable || !s.schedule.open && a.retryAfter == 0) {
			err = statusError(a)
		}
	}
	if err != nil {
		return err
	}
	s.result.took(a, now, s.due, s.sent)
	if a.status == http.StatusOK || s.schedule.open || s.schedule.hostile {
		c.read = append(c.read, i)
		return nil
	}
	if s.schedule.requests > 0 {
		s.schedule.arrivals.Add(-1) // the request is sent again
	}
	pause := a.retryAfter
	if s.schedule.requests == 0 {
		pause = min(pause, time.Until(s.schedule.end))
	}
	time.AfterFunc(pause, func() { c.give(i) })
	return nil
}

// release frees the slots of all answers that were read. The feeder then fills them together.
func (c *stream) release() {
	if len(c.read) > 0 {
		c.give(c.read...)
		c.read = c.read[:0]
	}
}

// buffered collects what is written until flush or the next read.
type buffered struct {
	net.Conn
	idle func() // is called before each read

	mu sync.Mutex // guards w
	w  *bufio.Writer
}

func (b *buffered) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.w.Write(p)
}

// through makes w pass on what is written.
func (b *buffered) through(w io.Writer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.w.Reset(w)
}

func (b *buffered) flush() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.w.Flush()
}

func (b *buffered) Read(p []byte) (int, error) {
	if b.idle != nil {
		b.idle()
	}
	if err := b.flush(); err != nil {
		return 0, err
	}
	return b.Conn.Read(p)
}
