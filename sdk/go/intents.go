package writ

import (
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
	"time"

	"github.com/coder/websocket"
)

const (
	evaluatePath   = "/v1/policy/evaluate"
	intentProtocol = "writ.v1"
	// maxLine bounds what is sent on a stream of intents. A longer intent is a request of its own, so 64 intents
	// never exceed the bytes that a stream may have on its way.
	maxLine = 64 << 10
	// maxIdle is how long a stream of intents stays open while no call uses it.
	maxIdle = time.Minute
)

// intents is the transport of a client with [Config.Stream]. It sends evaluations on a stream of intents, and all
// other requests with the transport below it. The first evaluation opens the stream, and the first one after its end
// opens another.
type intents struct {
	http.RoundTripper
	timeout time.Duration

	mu   sync.Mutex
	last *intentStream // may have ended
}

// RoundTrip implements [http.RoundTripper]. An answer of the stream becomes the answer of the request.
func (t *intents) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method != http.MethodPost || !strings.HasSuffix(req.URL.Path, evaluatePath) || req.ContentLength > maxLine {
		return t.RoundTripper.RoundTrip(req)
	}
	body, err := io.ReadAll(req.Body)
	if err = errors.Join(err, req.Body.Close()); err != nil {
		return nil, err
	}
	s := t.open(req)
	defer s.leave()
	a, err := s.ask(req.Context(), body)
	if err != nil {
		return nil, err
	}
	answer := io.NopCloser(bytes.NewReader(a.body))
	return &http.Response{StatusCode: a.status, Header: a.header, Body: answer, Request: req}, nil
}

// open returns the stream that takes intents. The caller must leave it.
func (t *intents) open(req *http.Request) *intentStream {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last == nil || !t.last.enter() {
		t.last = &intentStream{
			timeout: t.timeout, opened: make(chan struct{}), closing: make(chan struct{}), ended: make(chan struct{}),
			calls: 1, answers: make(map[string]chan lineAnswer),
		}
		go t.last.run(t, req.URL.String()+"/stream", req.Header.Get("Authorization"))
	}
	return t.last
}

// intentStream is one connection.
type intentStream struct {
	timeout time.Duration // bounds the opening, and each write
	opened  chan struct{} // is closed once conn and room, or failed or refusal, are set
	closing chan struct{} // is closed once the server takes no more
	ended   chan struct{} // is closed once no further answer comes, and failed says why

	conn    *websocket.Conn
	room    chan struct{} // has a value for each intent without an answer
	refusal *lineAnswer   // is the answer to each call if the server refuses the stream
	failed  error

	mu      sync.Mutex
	over    bool // no further call may use the stream
	calls   int  // how many calls use the stream
	idle    *time.Timer
	refs    int
	answers map[string]chan lineAnswer // by ref, of the intents without an answer
	heard   int                        // how many answers came
}

// enter counts a call, unless the stream takes no more.
func (s *intentStream) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return false
	}
	s.calls++
	if s.idle != nil {
		s.idle.Stop()
	}
	return true
}

// leave ends a call. The connection ends some time after the last one.
func (s *intentStream) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls--; s.calls == 0 && !s.over {
		s.idle = time.AfterFunc(maxIdle, func() { s.stop(true) })
	}
}

// stop lets no further call use the stream and closes the connection. If idle is set, it does so only while no call
// uses it.
func (s *intentStream) stop(idle bool) {
	s.mu.Lock()
	stays := idle && s.calls > 0
	s.over = s.over || !stays
	s.mu.Unlock()
	select {
	case <-s.opened:
		if !stays {
			_ = s.conn.CloseNow() // the reader learns of it
		}
	default:
	}
}

// run opens the connection and reads it until it ends.
func (s *intentStream) run(t *intents, target, authorization string) {
	err := s.dial(t, target, authorization)
	closing := sync.OnceFunc(func() {
		s.mu.Lock()
		s.over = true
		s.mu.Unlock()
		close(s.closing)
	})
	if err == nil {
		close(s.opened)
		err = s.read(closing)
		_ = s.conn.CloseNow() // it has ended
	}
	closing()
	s.failed = err
	close(s.ended)
}

// dial opens the connection. If the server refuses it, s has the refusal.
func (s *intentStream) dial(t *intents, target, authorization string) error {
	ctx, cancel := context.WithTimeout(context.Background(), s.timeout)
	defer cancel()
	//nolint:bodyclose // the library closes it
	conn, resp, err := websocket.Dial(ctx, target, &websocket.DialOptions{
		HTTPClient: &http.Client{
			Transport:     t.RoundTripper,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		HTTPHeader:   http.Header{"Authorization": {authorization}},
		Subprotocols: []string{intentProtocol},
	})
	if err != nil {
		if resp != nil && resp.StatusCode >= http.StatusMultipleChoices {
			body, _ := io.ReadAll(resp.Body) // a part of it is no problem document, and the status counts
			s.refusal = &lineAnswer{status: resp.StatusCode, header: resp.Header, body: body}
		}
		// Op says that no intent was sent.
		return &net.OpError{Op: "dial", Net: "websocket", Err: err}
	}
	conn.SetReadLimit(maxAnswer)
	_, text, err := conn.Read(ctx)
	var hello struct{ Window int }
	switch {
	case err != nil:
	case json.Unmarshal(text, &hello) != nil || hello.Window < 1 || conn.Subprotocol() != intentProtocol:
		err = errors.New("it is no stream of intents")
	default:
		s.conn, s.room = conn, make(chan struct{}, hello.Window)
		return nil
	}
	_ = conn.CloseNow() // there is an error already
	return &net.OpError{Op: "dial", Net: "websocket", Err: err}
}

// read hands the answers to the calls until the connection ends.
func (s *intentStream) read(closing func()) error {
	for {
		_, text, err := s.conn.Read(context.Background())
		if err != nil {
			return fmt.Errorf("the stream of intents was cut: %w", err)
		}
		a, err := parseLine(text)
		switch {
		case err != nil:
			return fmt.Errorf("a message of the stream of intents: %w", err)
		case a.closing:
			closing()
			continue
		}
		s.mu.Lock()
		answer := s.answers[a.ref]
		delete(s.answers, a.ref)
		s.heard++
		s.mu.Unlock()
		if answer == nil {
			return errors.New("an answer of the stream of intents has a ref that was not sent")
		}
		answer <- a
		<-s.room
	}
}

// ask sends a line and waits for its answer.
func (s *intentStream) ask(ctx context.Context, body []byte) (lineAnswer, error) {
	select {
	case <-s.opened:
	case <-s.ended:
		if s.refusal != nil {
			return *s.refusal, nil
		}
		return lineAnswer{}, s.failed
	case <-ctx.Done():
		return lineAnswer{}, ctx.Err()
	}
	select {
	case s.room <- struct{}{}:
	case <-s.closing:
		return lineAnswer{}, errors.New("the stream of intents ends")
	case <-ctx.Done():
		return lineAnswer{}, ctx.Err()
	}
	answer := make(chan lineAnswer, 1)
	s.mu.Lock()
	s.refs++
	ref, heard := strconv.Itoa(s.refs), s.heard
	s.answers[ref] = answer
	s.mu.Unlock()
	// The library closes the connection if the context of a write ends. A call that is given up must not end the
	// calls of others.
	writing, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.timeout)
	defer cancel()
	line := append([]byte(`{"ref":"`+ref+`",`), body[1:]...)
	if err := s.conn.Write(writing, websocket.MessageText, line); err != nil {
		s.stop(false)
		return lineAnswer{}, err
	}
	select {
	case a := <-answer:
		return a, nil
	case <-ctx.Done():
		s.mu.Lock()
		dead := s.heard == heard
		s.mu.Unlock()
		if dead && errors.Is(ctx.Err(), context.DeadlineExceeded) {
			s.stop(false) // the connection may be dead
		}
		return lineAnswer{}, ctx.Err()
	case <-s.ended:
	}
	select {
	case a := <-answer:
		return a, nil
	default:
		return lineAnswer{}, s.failed
	}
}

// lineAnswer is the answer to a line, as the answer of POST /v1/policy/evaluate.
type lineAnswer struct {
	ref     string
	closing bool // it is no answer, but says that the stream ends
	status  int
	header  http.Header
	body    []byte
}

// parseLine reads a message of the server. The members that stand for headers come first.
func parseLine(text []byte) (lineAnswer, error) {
	a := lineAnswer{header: make(http.Header)}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return a, errors.New("it is no object")
	}
	for {
		at := d.InputOffset()
		name, err := d.Token()
		if err != nil {
			return a, err
		}
		var value any
		switch name {
		case "closing":
			a.closing = true
			return a, nil
		case "ref", "replayed", "expired", "retry_after":
			if err := d.Decode(&value); err != nil {
				return a, err
			}
		default:
			a.body = append([]byte("{"), bytes.TrimLeft(text[at:], ", \t\r\n")...)
			return a, a.readStatus()
		}
		switch name {
		case "ref":
			a.ref, _ = value.(string) // null is answered to no ref of ours
		case "replayed":
			a.header.Set("Idempotent-Replayed", fmt.Sprint(value))
		case "retry_after":
			a.header.Set("Retry-After", fmt.Sprint(value))
		}
	}
}

// readStatus sets the status that the body would have.
func (a *lineAnswer) readStatus() error {
	var is struct {
		OK     bool
		Status int
	}
	if err := json.Unmarshal(a.body, &is); err != nil {
		return err
	}
	if a.status = is.Status; is.OK {
		a.status = http.StatusOK
	}
	if a.status < http.StatusOK || a.status >= 600 {
		return fmt.Errorf("its status is %d", a.status)
	}
	return nil
}
