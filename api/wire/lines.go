package wire

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/http/httputil"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/valyala/fasthttp"
)

// TypeLines is the content type of [Lines].
const TypeLines = "application/x-ndjson"

// LeaveBody keeps fasthttp from reading the body of a request of TypeLines, so that [OpenLines] can read it while it
// arrives. It is called after the headers were read. Fasthttp itself can only leave all bodies of a server unread. It
// then checks the length of none, and reads what is left of a body as the next request.
func LeaveBody(h *fasthttp.RequestHeader) {
	h.SetContentLength(0)
	h.Del("Expect")
	h.ResetConnectionClose() // fasthttp does not give up a connection that it wants to close
}

// HasLines reports whether a request may be read with [OpenLines].
func HasLines(h *fasthttp.RequestHeader) bool {
	kind, _, err := mime.ParseMediaType(string(h.ContentType()))
	return err == nil && kind == TypeLines && h.IsPost() && h.IsHTTP11()
}

// CloseUnread closes the connection of a request whose body LeaveBody has left, unless OpenLines reads it.
func CloseUnread(fc *fasthttp.RequestCtx) {
	if fc.Hijacked() {
		return
	}
	fc.SetConnectionClose()
	if c, ok := fc.Conn().(*Conn); ok {
		c.LeaveUnread()
	}
}

// Lines is a request and its answer in newline-delimited JSON, which go on at the same time. A message is a line. An
// empty line is a signal. The connection is closed after the answer, so nothing of the body is read as a request.
// One goroutine reads. Any number of goroutines write.
type Lines struct {
	peer
	body *bufio.Reader
}

// OpenLines sends the head of the answer to a request whose body LeaveBody has left. handle runs after that, as it
// does after [Upgrade].
func OpenLines(fc *fasthttp.RequestCtx, l PeerLimits, handle func(*Lines)) {
	lines := &Lines{peer: peer{conn: fc.Conn(), PeerLimits: l}}
	length, expects := framing(fc.Request.Header.RawHeaders())
	if expects { // the deadline of the answer before this one may have passed, and Send sets another
		_ = lines.peer.Send([]byte("HTTP/1.1 100 Continue\r\n\r\n")) // the next Send fails, too
	}
	out := &fc.Response
	out.SkipBody = true
	out.Header.SetContentType(TypeLines)
	out.Header.SetContentLength(-1)
	// Fasthttp compares with "close", and does not give up a connection that it wants to close.
	out.Header.Set("Connection", "Close")
	fc.Hijack(func(buffered net.Conn) {
		lines.body = bufio.NewReaderSize(bodyOf(buffered, length), peerBuffer)
		handle(lines)
	})
}

// framing returns the length of a body by the headers of its request. It is -1 for a chunked body. expects says that
// the client waits for the answer 100. Ambiguous has found the headers to have one meaning.
func framing(raw []byte) (length int64, expects bool) {
	for line := range bytes.Lines(raw) {
		name, value, _ := strings.Cut(string(bytes.TrimSpace(line)), ":")
		value = strings.TrimSpace(value)
		switch http.CanonicalHeaderKey(name) {
		case "Transfer-Encoding":
			length = -1
		case "Content-Length":
			length, _ = strconv.ParseInt(value, 10, 64) // fasthttp has refused what is no number
		case "Expect":
			expects = strings.EqualFold(value, "100-continue")
		}
	}
	return length, expects
}

// bodyOf returns a reader of a body. It has the error io.EOF only after the whole body.
func bodyOf(r io.Reader, length int64) io.Reader {
	if length < 0 {
		return httputil.NewChunkedReader(r)
	}
	return &wholeReader{io.LimitedReader{R: r, N: length}}
}

// wholeReader returns io.ErrUnexpectedEOF if fewer bytes come than it waits for.
type wholeReader struct{ io.LimitedReader }

func (r *wholeReader) Read(p []byte) (int, error) {
	n, err := r.LimitedReader.Read(p)
	if errors.Is(err, io.EOF) && r.N > 0 {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// Read returns the next line that is not empty. Its memory is valid until the next Read. The error is io.EOF after the
// whole body.
func (l *Lines) Read() ([]byte, error) {
	l.await(time.Now().Add(l.Idle))
	l.inside = false
	for {
		line, err := l.next()
		if err != nil || len(line) > 0 {
			return line, err
		}
		l.inside = false
		if err := l.counted(); err != nil {
			return nil, err
		}
	}
}

// next returns the next line.
func (l *Lines) next() ([]byte, error) {
	if _, err := l.body.Peek(1); err != nil {
		return nil, l.readError(err)
	}
	l.inside = true
	l.await(time.Now().Add(l.Message))
	l.buf = l.buf[:0]
	for {
		part, err := l.body.ReadSlice('\n')
		l.buf = append(l.buf, part...)
		line := bytes.TrimRight(l.buf, "\r\n")
		switch {
		case len(line) > l.Bytes, len(l.buf) > l.Bytes+len("\r\n"): // more are trimmed, and take memory
			return nil, ErrTooLong
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && !errors.Is(err, io.EOF): // the last line needs no end
			return nil, l.readError(err)
		case !utf8.Valid(line):
			return nil, ErrNoText
		}
		return line, nil
	}
}

func (l *Lines) readError(err error) error {
	if late := l.lateError(err); late != nil {
		return late
	}
	return err
}

// Append appends a line to dst, for Send.
func (l *Lines) Append(dst, text []byte) []byte { return append(append(dst, text...), '\n') }

// Send sends lines. After an error, every later Send has the same error.
func (l *Lines) Send(lines []byte) error {
	chunk := fmt.Appendf(make([]byte, 0, len(lines)+20), "%x\r\n", len(lines))
	return l.peer.Send(append(append(chunk, lines...), "\r\n"...))
}

// Ping sends an empty line, unless something is being sent. It fails if the peer has gone.
func (l *Lines) Ping() {
	if !l.busy() {
		_ = l.Send([]byte("\n")) // the next Send fails, too
	}
}

// End ends the answer and closes the connection. It ends a Read that waits.
func (l *Lines) End(int, string) { l.close([]byte("0\r\n\r\n")) }
