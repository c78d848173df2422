package wire

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/fasthttp/websocket"
	"github.com/valyala/fasthttp"
)

const (
	// maxSignals is how many pings and pongs a peer may send in a second.
	maxSignals = 64
	// peerBuffer is how many bytes of a peer are read at once, some 40 intents.
	peerBuffer = 16 << 10
)

// These errors of [Socket.Read] say what the peer did wrong. Any other error, except io.EOF, is a breach of
// RFC 6455 or a lost connection.
var (
	ErrTooLong = errors.New("the message is too long")
	ErrNoText  = errors.New("the message is not text in UTF-8")
	ErrSlow    = errors.New("the message did not arrive in time")
	ErrSilent  = errors.New("nothing arrived for too long")
	ErrSignals = errors.New("too many pings")
)

// The codes with which [Socket.End] ends a connection: see RFC 6455, section 7.4.1.
const (
	EndNormal    = websocket.CloseNormalClosure
	EndGoingAway = websocket.CloseGoingAway
	EndNoText    = websocket.CloseInvalidFramePayloadData
	EndPolicy    = websocket.ClosePolicyViolation
	EndTooLong   = websocket.CloseMessageTooBig
)

// Unfit returns the header that keeps a request from becoming a WebSocket with the subprotocol, and the
// value that it must have. It returns "" if every header fits. A browser sends the Origin of its page. It
// must be this server's, so that no page of another site opens a connection.
func Unfit(fc *fasthttp.RequestCtx, protocol string) (header, want string) {
	h := &fc.Request.Header
	has := func(name, token string) bool {
		for _, line := range h.PeekAll(name) {
			for t := range strings.SplitSeq(string(line), ",") {
				if strings.EqualFold(strings.TrimSpace(t), token) {
					return true
				}
			}
		}
		return false
	}
	switch {
	case !fc.IsGet() || !h.IsHTTP11() || !has("Upgrade", "websocket"):
		return "Upgrade", "must be websocket, in a GET of HTTP/1.1"
	case !has("Connection", "upgrade"):
		return "Connection", "must be Upgrade"
	case string(h.Peek("Sec-WebSocket-Version")) != "13":
		return "Sec-WebSocket-Version", "must be 13"
	case len(h.Peek("Sec-WebSocket-Key")) != 24:
		return "Sec-WebSocket-Key", "must be 16 bytes in base64"
	case !has("Sec-WebSocket-Protocol", protocol):
		return "Sec-WebSocket-Protocol", "must name " + protocol
	case len(h.Peek("Origin")) > 0 && !sameOrigin(string(h.Peek("Origin")), string(h.Host())):
		return "Origin", "must be this server's: pages of other sites may not open a stream"
	}
	return "", ""
}

func sameOrigin(origin, host string) bool {
	u, err := url.Parse(origin)
	return err == nil && strings.EqualFold(u.Host, host)
}

// Socket is a WebSocket connection of a server: see RFC 6455. Its messages are texts, and are never
// compressed. One goroutine reads. Any number of goroutines write.
type Socket struct {
	ws *websocket.Conn
	peer
}

// peer is the other end of a [Socket] or of [Lines].
type peer struct {
	conn net.Conn // below all buffers
	PeerLimits

	// Only the goroutine that reads uses these fields.
	buf     []byte
	inside  bool      // whether a message is being read
	signals int       // pings, pongs and empty lines since
	since   time.Time // when signals was 0

	hurried atomic.Bool
	mu      sync.Mutex // is held during a write
	failed  error      // of a write
}

// PeerLimits bound what a peer may ask of a connection.
type PeerLimits struct {
	// Bytes is the greatest length of a message.
	Bytes int
	// Message bounds the time from the first byte of a message to its last. Idle bounds the time without any
	// message or signal of the peer. Write bounds the time in which the peer reads what is written at once.
	Message, Idle, Write time.Duration
}

// Upgrade makes a WebSocket of a request that is not [Unfit]. handle runs after the answer was sent, and the
// connection is closed when handle returns. handle is never called if the answer cannot be sent, or if the server
// is stopping. handle must not panic, and no other goroutine may use the socket once it has returned.
func Upgrade(fc *fasthttp.RequestCtx, protocol string, l PeerLimits, handle func(*Socket)) {
	conn := fc.Conn()
	u := websocket.FastHTTPUpgrader{
		ReadBufferSize: peerBuffer,
		Subprotocols:   []string{protocol},
		CheckOrigin:    func(*fasthttp.RequestCtx) bool { return true }, // Unfit has checked it
	}
	// It fails for requests that are unfit alone, and answers those itself.
	_ = u.Upgrade(fc, func(ws *websocket.Conn) {
		s := &Socket{ws: ws, peer: peer{conn: conn, PeerLimits: l}}
		ws.SetPingHandler(func(payload string) error { return s.signal(websocket.PongMessage, payload) })
		ws.SetPongHandler(func(string) error { return s.signal(0, "") })
		ws.SetCloseHandler(func(int, string) error { return nil }) // End answers it, after the last message
		handle(s)
	})
}

// signal counts a ping or pong, and answers with a control frame unless answer is 0.
func (s *Socket) signal(answer int, payload string) error {
	if err := s.counted(); err != nil || answer == 0 {
		return err
	}
	return s.Send(appendFrame(nil, answer, payload))
}

// counted counts a signal of the peer.
func (s *peer) counted() error {
	now := time.Now()
	if now.Sub(s.since) >= time.Second {
		s.since, s.signals = now, 0
	}
	if s.signals++; s.signals > maxSignals {
		return ErrSignals
	}
	if !s.inside {
		s.await(now.Add(s.Idle))
	}
	return nil
}

// OnWait has Read call f before it reads from the connection, which may wait. Messages that have arrived together are
// read without a call. OnWait is called before the first Read, by the goroutine that reads. It reports whether Read
// calls f, which holds for each connection of a listener of [Listen].
func (s *peer) OnWait(f func()) bool {
	c, ok := s.conn.(*Conn)
	if ok {
		c.waits = f
	}
	return ok
}

// await sets the deadline of the reads to come.
func (s *peer) await(t time.Time) { _ = s.conn.SetReadDeadline(t) } // if it fails, so does the read

// Read returns the next message. Its memory is valid until the next Read. The error is io.EOF once the peer has
// ended the connection.
func (s *Socket) Read() ([]byte, error) {
	s.await(time.Now().Add(s.Idle))
	s.inside = false
	kind, r, err := s.ws.NextReader()
	if err != nil {
		return nil, s.readError(err)
	}
	s.inside = true
	s.await(time.Now().Add(s.Message))
	if kind != websocket.TextMessage {
		return nil, ErrNoText
	}
	s.buf = s.buf[:0]
	for {
		if len(s.buf) == cap(s.buf) {
			s.buf = append(s.buf, 0)[:len(s.buf)]
		}
		n, err := r.Read(s.buf[len(s.buf):cap(s.buf)])
		s.buf = s.buf[:len(s.buf)+n]
		switch {
		case len(s.buf) > s.Bytes:
			return nil, ErrTooLong
		case errors.Is(err, io.EOF) && !utf8.Valid(s.buf):
			return nil, ErrNoText
		case errors.Is(err, io.EOF):
			return s.buf, nil
		case err != nil:
			return nil, s.readError(err)
		}
	}
}

// lateError returns the error of a read that ended at its deadline. It returns nil for any other error.
func (s *peer) lateError(err error) error {
	var late net.Error
	switch {
	case !errors.As(err, &late) || !late.Timeout():
		return nil
	case s.inside:
		return ErrSlow
	}
	return ErrSilent
}

func (s *Socket) readError(err error) error {
	switch late := s.lateError(err); {
	case errors.Is(err, ErrSignals):
		return ErrSignals
	case late != nil:
		return late
	case websocket.IsUnexpectedCloseError(err, websocket.CloseAbnormalClosure):
		return io.EOF // the peer has sent a close frame
	case websocket.IsCloseError(err, websocket.CloseAbnormalClosure) && !s.inside:
		return io.EOF // the peer has ended the connection without one
	}
	return err
}

// Append appends the frame of a message to dst, for Send.
func (s *Socket) Append(dst, text []byte) []byte {
	return appendFrame(dst, websocket.TextMessage, text)
}

// appendFrame appends a frame that is not masked, as RFC 6455, section 5.2, has it. Several frames become one
// write, which the library cannot do: a write for each message would cost as much as its decision.
func appendFrame[T []byte | string](dst []byte, kind int, payload T) []byte {
	const final = 1 << 7
	dst = append(dst, final|byte(kind))
	switch n := len(payload); {
	case n < 126:
		dst = append(dst, byte(n))
	case n < 1<<16:
		dst = binary.BigEndian.AppendUint16(append(dst, 126), uint16(n))
	default:
		dst = binary.BigEndian.AppendUint64(append(dst, 127), uint64(n))
	}
	return append(dst, payload...)
}

// Send sends frames. After an error, every later Send has the same error.
func (s *peer) Send(frames []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed != nil {
		return s.failed
	}
	s.failed = s.conn.SetWriteDeadline(time.Now().Add(s.Write))
	if s.hurried.Load() { // after SetWriteDeadline, which has overwritten the one of Hurry
		s.Hurry()
	}
	if s.failed == nil {
		_, s.failed = s.conn.Write(frames)
	}
	return s.failed
}

// busy reports whether something is being sent.
func (s *peer) busy() bool {
	free := s.mu.TryLock()
	if free {
		s.mu.Unlock()
	}
	return !free
}

// Ping asks the peer for a sign of life, unless something is being sent.
func (s *Socket) Ping() {
	if !s.busy() {
		_ = s.Send(appendFrame(nil, websocket.PingMessage, "")) // the next Send fails, too
	}
}

// Hurry bounds the write that is under way, and each later one, by a second. A peer that does not read must not
// delay the end of the server.
func (s *peer) Hurry() {
	s.hurried.Store(true)
	_ = s.conn.SetWriteDeadline(time.Now().Add(lingerTime)) // if it fails, so does the write
}

// End sends a close frame and closes the connection. It ends a Read that waits. why has at most 123 bytes.
func (s *Socket) End(code int, why string) {
	s.close(appendFrame(nil, websocket.CloseMessage, websocket.FormatCloseMessage(code, why)))
}

// close sends the last bytes and closes the connection.
func (s *peer) close(last []byte) {
	_ = s.Send(last) // it is closed next
	if c, ok := s.conn.(*Conn); ok {
		c.LeaveUnread()
	}
	_ = s.conn.Close()
}
