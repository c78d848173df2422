package api

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"writ.example/writ/api/wire"
	"writ.example/writ/storage"
)

// linesClient is the client of a stream of intents in the body of a request.
type linesClient struct {
	t      *testing.T
	body   *io.PipeWriter
	answer *http.Response
	lines  *bufio.Scanner
}

// postLines opens a stream and reads its first line.
func (h *harness) postLines(token string) *linesClient {
	t := h.t.(*testing.T)
	t.Helper()
	r, w := io.Pipe()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+h.addr+evaluateStreamPath+"?window=8", r)
	must(t, err)
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", wire.TypeLines)
	c := &linesClient{t: t, body: w}
	transport := new(http.Transport)
	c.answer, err = transport.RoundTrip(req)
	must(t, err)
	t.Cleanup(func() { c.body.Close(); c.answer.Body.Close(); transport.CloseIdleConnections() })
	c.lines = bufio.NewScanner(c.answer.Body)
	c.lines.Buffer(nil, 1<<20)
	if hello := c.next(); c.answer.StatusCode != http.StatusOK || hello.Window != 8 || c.answer.Header.Get("Content-Type") != wire.TypeLines {
		t.Fatalf("the stream begins with %d %v %s", c.answer.StatusCode, c.answer.Header, hello.text)
	}
	return c
}

func (c *linesClient) send(lines ...any) {
	c.t.Helper()
	for _, line := range lines {
		data, err := json.Marshal(line)
		must(c.t, err)
		_, err = c.body.Write(append(data, '\n'))
		must(c.t, err)
	}
}

// next returns the next line, or the zero line at the end of the answer.
func (c *linesClient) next() (l line) {
	c.t.Helper()
	for c.lines.Scan() {
		if l.text = bytes.Clone(c.lines.Bytes()); len(l.text) > 0 {
			must(c.t, json.Unmarshal(l.text, &l))
			return l
		}
	}
	must(c.t, c.lines.Err())
	return l
}

// TestIntentLines_AnswersLikeEvaluate checks that a line is answered while the body goes on, and that the answer ends
// after the body.
func TestIntentLines_AnswersLikeEvaluate(t *testing.T) {
	h := start(t)
	h.register(acme)
	c := h.postLines(h.operator(acme))
	for name, body := range map[string]obj{"allow": intent(), "deny": intent(obj{"action_type": "sql.drop"})} {
		c.send(ref(name, body))
		got := c.next()
		delete(body, "ref")
		want := h.evaluate(acme, body).wantStatus(http.StatusOK)
		if text := `{"ref":"` + name + `",` + string(want.body[1:]); string(got.text) != text {
			t.Errorf("the answer is %s, want %s", got.text, text)
		}
	}
	c.send(ref("bad", obj{}))
	if got := c.next(); got.Code != codeInvalidRequest || *got.Ref != "bad" {
		t.Errorf("the answer is %s, want %s of bad", got.text, codeInvalidRequest)
	}
	_, err := c.body.Write([]byte("\n\r\n")) // says that the client lives
	must(t, err)
	must(t, c.body.Close())
	if got := c.next(); got.text != nil {
		t.Errorf("after the body comes %s", got.text)
	}
	h.wantEnded(endedByClient, 1)
}

// TestIntentLines_Shutdown checks that a stream in a body ends as a WebSocket does.
func TestIntentLines_Shutdown(t *testing.T) {
	h := start(t)
	h.register(acme)
	c := h.postLines(h.operator(acme))
	c.send(ref("a", intent()))
	if got := c.next(); got.Decision != "allow" {
		t.Errorf("the answer is %s", got.text)
	}
	stopped := make(chan error, 1)
	go func() { stopped <- h.server.Shutdown(t.Context()) }()
	if got := c.next(); got.Closing != string(endedShutdown) {
		t.Errorf("the stream ends with %s, want %s", got.text, endedShutdown)
	}
	must(t, <-stopped)
}

// exchange sends bytes on a connection and returns all that the server answers.
func (h *harness) exchange(sent string) string {
	t := h.t.(*testing.T)
	t.Helper()
	conn, err := net.Dial("tcp", h.addr)
	must(t, err)
	defer conn.Close()
	must(t, conn.SetDeadline(time.Now().Add(30*time.Second)))
	_, err = io.WriteString(conn, sent)
	must(t, err)
	answers, err := io.ReadAll(conn) // the server closes the connection
	must(t, err)
	return string(answers)
}

// TestIntentLines_NothingOfABodyIsARequest puts a request into bodies that are read in part, and after them.
func TestIntentLines_NothingOfABodyIsARequest(t *testing.T) {
	h := start(t)
	h.register(acme)
	data, err := json.Marshal(ref("a", intent()))
	must(t, err)
	inner := "GET /health HTTP/1.1\r\nHost: h\r\n\r\n"
	head := func(token, more string) string {
		return "POST " + evaluateStreamPath + " HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer " + token +
			"\r\nContent-Type: application/x-ndjson\r\n" + more + "\r\n"
	}
	length := func(n int) string { return fmt.Sprintf("Content-Length: %d\r\n", n) }
	chunk := func(text string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(text), text) }
	good, long := h.operator(acme), strings.Repeat("x", h.server.cfg.Limits.Body+1)
	for name, tc := range map[string]struct {
		sent, status, want string
	}{
		"refused":       {head("none", length(len(inner))) + inner, "401", codeUnauthorized},
		"refused chunk": {head("none", "Transfer-Encoding: chunked\r\n") + chunk(inner), "401", codeUnauthorized},
		"query": {strings.Replace(head(good, length(len(inner))), " HTTP", "?window=0 HTTP", 1) + inner, "400",
			codeInvalidRequest},
		"coded": {head(good, "Content-Encoding: gzip\r\n"+length(len(inner))) + inner, "415", codeMediaType},
		"two lengths": {head(good, length(1)+length(len(inner))) + inner, "400",
			codeMalformed},
		"after a length":  {head(good, length(len(data))) + string(data) + inner, "200", `"ref":"a"`},
		"after chunks":    {head(good, "Transfer-Encoding: chunked\r\n") + chunk(string(data)) + "0\r\n\r\n" + inner, "200", `"ref":"a"`},
		"after no body":   {head(good, "") + inner, "200", `"window"`},
		"a line too long": {head(good, length(len(long)+1+len(inner))) + long + "\n" + inner, "200", string(endedTooLong)},
		"expects":         {head(good, "Expect: 100-continue\r\n"+length(len(data))) + string(data), "100", `"ref":"a"`},
		"closes":          {head(good, "Connection: close\r\n"+length(len(data))) + string(data), "200", `"ref":"a"`},
	} {
		got := h.exchange(tc.sent)
		if !strings.HasPrefix(got, "HTTP/1.1 "+tc.status+" ") || !strings.Contains(got, tc.want) {
			t.Errorf("%s: the answer is %s, want %s with %s", name, got, tc.status, tc.want)
		}
		answers := strings.Count(got, "HTTP/1.1 ") - strings.Count(got, "HTTP/1.1 100 ")
		if answers != 1 || !strings.Contains(strings.ToLower(got), "connection: close\r\n") {
			t.Errorf("%s: %d answers, want one that says that the connection is closed: %s", name, answers, got)
		}
	}
}

// TestIntentLines_OtherTypes checks that a body of another type is refused, and read within the limit of its route.
func TestIntentLines_OtherTypes(t *testing.T) {
	h := start(t)
	for name, head := range map[string]string{
		"json": "HTTP/1.1\r\nContent-Type: application/json", "none": "HTTP/1.1", "old": "HTTP/1.0\r\nContent-Type: application/x-ndjson",
	} {
		got := h.exchange("POST " + evaluateStreamPath + " " + head + "\r\nHost: h\r\nConnection: close\r\nAuthorization: Bearer " + h.operator(acme) +
			"\r\nContent-Length: 2\r\n\r\n{}")
		if !strings.HasPrefix(got, "HTTP/1.1 415 ") {
			t.Errorf("%s: the answer is %s, want 415", name, got)
		}
	}
}

// TestBodyLimits checks that every other body has its limit, although a stream reads a body that has none.
func TestBodyLimits(t *testing.T) {
	h := start(t)
	for path, most := range map[string]int{
		"/v1/policy/evaluate": h.server.cfg.Limits.Body, batchPath: storage.MaxBody, evaluateStreamPath: h.server.cfg.Limits.Body,
		"/v1/policies/register": h.server.cfg.Limits.Body, "/nowhere": h.server.cfg.Limits.Body,
	} {
		for _, kind := range []string{"application/json", wire.TypeLines} {
			if path == evaluateStreamPath && kind == wire.TypeLines {
				continue
			}
			for _, coding := range []string{fmt.Sprintf("Content-Length: %d", most+1), "Transfer-Encoding: chunked"} {
				body := "" // what is too long is refused before it is sent
				if coding[0] == 'T' {
					body = fmt.Sprintf("%x\r\n", most+1)
				}
				got := h.exchange("POST " + path + " HTTP/1.1\r\nHost: h\r\nContent-Type: " + kind + "\r\n" + coding + "\r\n\r\n" + body)
				if !strings.HasPrefix(got, "HTTP/1.1 413 ") {
					t.Errorf("%s with %d bytes of %s, %s: the answer is %.200s, want 413", path, most+1, kind, coding, got)
				}
			}
		}
	}
}
