package api

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"writ.example/writ/api/wire"
)

func TestOversized_IsRefusedBeforeItIsRead(t *testing.T) {
	h := start(t)
	auth := "Authorization: Bearer " + h.operator(acme) + "\r\nContent-Type: application/json\r\n"
	for name, tc := range map[string]struct {
		request string
		status  int
		code    string
	}{
		"chunks without end": {"Transfer-Encoding: chunked\r\n\r\n" + strings.Repeat("1000\r\n"+strings.Repeat("a", 0x1000)+"\r\n", 1000), 413, codeBodyTooLarge},
		"expected and too large": {
			"Expect: 100-continue\r\nContent-Length: 999999999\r\n\r\n", 413, codeBodyTooLarge,
		},
		"a length alone": {"Content-Length: 262145\r\n\r\n", 413, codeBodyTooLarge},
		"many headers":   {strings.Repeat("X-A: b\r\n", 10_000) + "\r\n", 431, codeHeaderTooLarge},
		"one long header": {
			"X-A: " + strings.Repeat("b", 1<<20) + "\r\n\r\n", 431, codeHeaderTooLarge,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := h.raw("POST /v1/rules HTTP/1.1\r\nHost: x\r\n" + auth + tc.request)
			if r.status != tc.status || r.code() != tc.code {
				t.Errorf("%d %s (%s), want %d %s", r.status, r.body, r.what, tc.status, tc.code)
			}
		})
	}
}

// TestOversized_ExpectedBodyIsNotAskedFor tests a client that sends Expect: 100-continue and waits
// before it sends its body. If the body is too large, the server must refuse at once, without a 100
// Continue.
func TestOversized_ExpectedBodyIsNotAskedFor(t *testing.T) {
	h := start(t)
	const limit = 256 << 10
	dial := func(length int) net.Conn {
		c, err := net.Dial("tcp", h.addr)
		must(t, err)
		t.Cleanup(func() { c.Close() })
		must(t, c.SetDeadline(time.Now().Add(10*time.Second)))
		_, err = fmt.Fprintf(c, "POST /v1/rules HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"+
			"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n", h.operator(acme), length)
		must(t, err)
		return c
	}

	got, err := io.ReadAll(dial(limit + 1)) // the server closes the connection
	must(t, err)
	if !bytes.HasPrefix(got, []byte("HTTP/1.1 413 ")) || bytes.Contains(got, []byte("100 Continue")) ||
		!bytes.Contains(got, []byte("\r\nConnection: close\r\n")) || !bytes.Contains(got, []byte(codeBodyTooLarge)) {
		t.Errorf("answer to a length above the limit:\n%s\nwant a 413 that closes, and nothing before it", got)
	}

	c := dial(limit)
	const next = "HTTP/1.1 100 Continue\r\n\r\n"
	asked := make([]byte, len(next))
	if _, err := io.ReadFull(c, asked); err != nil || string(asked) != next {
		t.Fatalf("answer to a length at the limit = %q, %v, want %q", asked, err, next)
	}
	_, err = io.WriteString(c, strings.Repeat(" ", limit))
	must(t, err)
	if r := readReply(t, c); r.status != http.StatusBadRequest {
		t.Errorf("answer to the body = %d %s, want 400", r.status, r.body)
	}
}

// TestContinue_AfterIdleTime checks that a connection that was idle for longer than an answer may take still gets the
// answers that fasthttp writes itself: the one that asks for a body, and the one that refuses a request.
func TestContinue_AfterIdleTime(t *testing.T) {
	t.Parallel()
	h := start(t, func(c *setup) { c.Limits.Write = time.Second })
	for sent, want := range map[string]string{
		"POST /v1/rules HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n": "HTTP/1.1 100 ",
		"POST /v1/rules HTTP/1.1\r\nHost: x\r\nContent-Length: 999999999\r\n\r\n":                 "HTTP/1.1 413 ",
	} {
		c, err := net.Dial("tcp", h.addr)
		must(t, err)
		defer c.Close()
		must(t, c.SetDeadline(time.Now().Add(time.Minute)))
		_, err = io.WriteString(c, "GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
		must(t, err)
		if r := readReply(t, c); r.status != http.StatusOK {
			t.Fatalf("the first answer is %d %s", r.status, r.body)
		}
		time.Sleep(time.Second + 2*wire.Slack) // the deadline of that answer passes
		_, err = io.WriteString(c, sent)
		must(t, err)
		got := make([]byte, len(want))
		if _, err := io.ReadFull(c, got); err != nil || string(got) != want {
			t.Errorf("the answer to %q is %q, %v, want %q", sent, got, err, want)
		}
	}
}

// TestOversized_JSONThatIsDearToReadIsA400 sends bodies that are within the size limit. They are
// made to cost the decoder much time or depth.
func TestOversized_JSONThatIsDearToReadIsA400(t *testing.T) {
	h := start(t)
	const room = 256<<10 - 512
	var keys strings.Builder
	for i := 0; keys.Len() < room; i++ {
		fmt.Fprintf(&keys, `"k%d":"",`, i)
	}
	members := strings.TrimSuffix(keys.String(), ",")
	for name, body := range map[string]string{
		"arrays":         strings.Repeat("[", room),
		"objects":        strings.Repeat(`{"a":`, room/5),
		"balanced":       strings.Repeat("[", room/2) + strings.Repeat("]", room/2),
		"unknown keys":   "{" + members + "}",
		"one key":        "{" + strings.Repeat(`"name":"n",`, room/11) + `"name":"n"}`,
		"a long number":  `{"policy_id":` + strings.Repeat("9", room) + "}",
		"a long string":  `{"policy_id":"` + strings.Repeat("\\u0000", room/6) + `"}`,
		"metadata":       `{"policy_id":"` + policyID + `","intent":{"metadata":{` + members[:strings.LastIndex(members[:room-200], ",")] + `}}}`,
		"metadata depth": `{"policy_id":"` + policyID + `","intent":{"metadata":` + strings.Repeat(`{"a":`, 20_000) + "1" + strings.Repeat("}", 20_000) + "}}",
	} {
		t.Run(name, func(t *testing.T) {
			for _, path := range []string{"/v1/policy/evaluate", "/v1/rules", "/v1/policies/register"} {
				h.do("POST", path, h.operator(acme), body).wantProblem(http.StatusBadRequest, codeInvalidRequest)
			}
			condition := fmt.Sprintf(`{"name":"n","action":"{\"decision\":\"deny\"}","condition":%q}`, strings.Repeat(`{"all":[`, 5000))
			h.do("POST", "/v1/rules", h.operator(acme), condition).wantProblem(http.StatusBadRequest, codeInvalidRequest)
		})
	}
}

func TestOversized_CompressedBodiesAreRefused(t *testing.T) {
	h := start(t)
	for _, coding := range []string{"gzip", "br", "deflate", "zstd", "gzip, gzip", "GZIP", "x-gzip"} {
		h.do("POST", "/v1/rules", h.operator(acme), "{}", "Content-Encoding", coding).
			wantProblem(http.StatusUnsupportedMediaType, codeMediaType)
	}
}
