package gateway_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"writ.example/writ/plugs/gateway"
	"writ.example/writ/plugs/plug"
)

// line is the gateway at the other end of standard input and output.
type line struct {
	t     *testing.T
	in    io.Writer
	out   *bufio.Scanner
	calls *atomic.Int64 // which the server behind got
}

// newLine starts a gateway whose server writ answers.
func newLine(t *testing.T, writ http.HandlerFunc, mapping string) *line {
	t.Helper()
	server := httptest.NewServer(writ)
	t.Cleanup(server.Close)
	l := &line{t: t, calls: new(atomic.Int64)}
	behind := mcp.NewServer(&mcp.Implementation{Name: "behind", Version: "1"},
		&mcp.ServerOptions{Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}}})
	behind.AddTool(&mcp.Tool{Name: "copy", InputSchema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"},"to":{"type":"array"}}}`)},
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			l.calls.Add(1)
			return &mcp.CallToolResult{}, nil
		})
	behind.AddTool(&mcp.Tool{Name: "odd name", InputSchema: json.RawMessage(`{"type":"object"}`)}, nil)
	behind.AddTool(&mcp.Tool{Name: "elsewhere", InputSchema: json.RawMessage(`{"type":"object","$ref":"file:///etc/passwd"}`)}, nil)
	near, far := mcp.NewInMemoryTransports()
	ctx, cancel := context.WithCancel(context.Background())
	session, err := behind.Connect(ctx, far, nil)
	must(t, err)
	g, err := gateway.Open(ctx, gateway.Config{Server: "s", Log: t.Output(), Settings: plug.Settings{
		URL: server.URL, APIKey: "writ_secret", PolicyID: "p", AgentID: "a", Timeout: 500 * time.Millisecond, Wait: time.Second,
		State: filepath.Join(t.TempDir(), "state"), Mapping: mapping,
	}}, near)
	must(t, err)
	fromClient, in := io.Pipe()
	out, toClient := io.Pipe()
	l.in, l.out = in, bufio.NewScanner(out)
	done := make(chan error, 1)
	go func() { done <- g.Serve(ctx, gateway.Stdio(fromClient, toClient)) }()
	t.Cleanup(func() {
		_ = in.Close()
		cancel()
		<-done
		_ = toClient.Close()
		_ = g.Close()
		_ = session.Close()
	})
	l.send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	l.read()
	l.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return l
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (l *line) send(message string) {
	l.t.Helper()
	_, err := io.WriteString(l.in, message+"\n")
	must(l.t, err)
}

type answered struct {
	Error  struct{ Code int }
	Result struct {
		IsError bool
		Content []struct{ Text string }
		Tools   []struct{ Name string }
	}
}

func (l *line) read() (a answered) {
	l.t.Helper()
	if !l.out.Scan() {
		l.t.Fatalf("the gateway has ended: %v", l.out.Err())
	}
	must(l.t, json.Unmarshal(l.out.Bytes(), &a))
	return a
}

func says(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}
}

// TestStdio_Refuses holds which messages are refused without a decision, and that the connection goes on.
func TestStdio_Refuses(t *testing.T) {
	l := newLine(t, func(http.ResponseWriter, *http.Request) { t.Error("the server was asked") }, "")
	call := func(params string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":` + params + `}`
	}
	for message, code := range map[string]int{
		`{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"file:///a"}}`: -32601,
		`{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"debug"}}`:      -32601,
		`{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{}}`:               -32601,
		`{"jsonrpc":"2.0","id":1,"method":"tools/Call","params":{"name":"copy"}}`:              -32601,
		`{"jsonrpc":"2.0","id":1,"method":"anything"}`:                                         -32601,
		`{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call","params":{}}`:           -32600,
		call(`{"name":"copy","name":"copy"}`):                                                  -32600,
		call(`{"name":"copy","arguments":{"path":"/a","path":"/b"}}`):                          -32600,
		call(`{"name":"copy","arguments":{"to":[{"a":1,"a":2}]}}`):                             -32600,
		call(`{"name":"copy"`):                                      -32600,
		call(`{"name":"copy"}} {`):                                  -32600,
		call(`{"name":"copy","arguments":[]}`):                      -32602,
		call(`{"name":"copy","arguments":{"path":1}}`):              -32602,
		call(`{"name":"copy","arguments":{"path":"/a","other":1}}`): -32602,
		call(`{"name":"copy","arguments":{"path":"a"}}`):            -32602,
		call(`{"name":"copy","arguments":{"path":"~/a"}}`):          -32602,
		call(`{"name":"elsewhere","arguments":{}}`):                 -32602,
		call(`{"name":"odd name","arguments":{}}`):                  -32602,
		call(`{"name":"writ","arguments":{}}`):                      -32602,
		call(`{"name":"","arguments":{}}`):                          -32602,
	} {
		l.send(message)
		if got := l.read().Error.Code; got != code {
			t.Errorf("%s: code %d, want %d", message, got, code)
		}
	}
	l.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	if tools := l.read().Result.Tools; len(tools) != 1 || tools[0].Name != "copy" {
		t.Errorf("the tools are %v, want copy alone", tools)
	}
	if n := l.calls.Load(); n != 0 {
		t.Errorf("the server behind got %d calls", n)
	}
}

// TestGateway_WrongAnswers holds that no answer but an allow lets a call through, alone or in a batch.
func TestGateway_WrongAnswers(t *testing.T) {
	allow := `{"ok":true,"approved":true,"decision_id":"d","reasons":["r"],"receipt":{"decision":"allow"}}`
	deny := `{"ok":true,"approved":false,"decision_id":"d","reasons":["batch.refused: r"],"receipt":{"decision":"deny"}}`
	answers := []http.HandlerFunc{
		says(200, ""), says(200, "{}"), says(200, "null"), says(200, `{"approved":true}`), says(201, allow), says(200, allow),
		says(200, `{"results":[]}`), says(200, `{"results":[`+allow+`]}`), says(200, `{"results":[`+allow+","+deny+`]}`),
		says(200, `{"results":[`+deny+","+deny+`]}`), says(200, `{"results":[null,null]}`),
		says(302, ""), says(400, "{}"), says(401, ""), says(404, ""), says(500, allow), says(503, ""),
		func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // so that the end of the connection is noticed
			<-r.Context().Done()
		},
		func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	}
	for i, answer := range answers {
		l := newLine(t, answer, "testdata/mapping.yaml")
		for _, args := range []string{`{"path":"/a","to":[]}`, `{"path":"/a","to":["/b"]}`} {
			l.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"copy","arguments":` + args + `}}`)
			if a := l.read(); a.Error.Code != -32603 && a.Error.Code != -32602 {
				t.Errorf("answer %d, %s: %+v, want an error", i, args, a)
			}
		}
		if n := l.calls.Load(); n != 0 {
			t.Errorf("answer %d: the server behind got %d calls", i, n)
		}
	}
}

// TestFront_Check holds which addresses want a credential and a name.
func TestFront_Check(t *testing.T) {
	for _, c := range []struct {
		front gateway.Front
		want  string
	}{
		{gateway.Front{Listen: "127.0.0.1:3822"}, ""},
		{gateway.Front{Listen: "[::1]:3822"}, ""},
		{gateway.Front{Listen: "localhost:0"}, ""},
		{gateway.Front{Listen: "127.0.0.1"}, "--listen"},
		{gateway.Front{Listen: ":3822"}, "--bearer-file"},
		{gateway.Front{Listen: "0.0.0.0:3822"}, "--bearer-file"},
		{gateway.Front{Listen: "192.0.2.1:3822"}, "--bearer-file"},
		{gateway.Front{Listen: "mcp.example:3822"}, "--bearer-file"},
		{gateway.Front{Listen: ":3822", Bearer: "b"}, "--host"},
		{gateway.Front{Listen: "[::]:3822", Bearer: "b"}, "--host"},
		{gateway.Front{Listen: ":3822", Bearer: "b", Hosts: []string{"mcp.example"}}, ""},
		{gateway.Front{Listen: "192.0.2.1:3822", Bearer: "b"}, ""},
	} {
		err := c.front.Check()
		if got := fmt.Sprint(err); c.want == "" && err != nil || !strings.HasPrefix(got, c.want) && c.want != "" {
			t.Errorf("%+v: %s, want %q", c.front, got, c.want)
		}
	}
}

// TestGateway_Hosts holds under which names and from which pages a gateway is called.
func TestGateway_Hosts(t *testing.T) {
	h := new(gateway.Gateway).Handler(gateway.Front{Listen: "127.0.0.1:3822", Hosts: []string{"mcp.example"}, Bearer: "b"})
	for _, c := range []struct {
		host, origin string
		want         int
	}{
		{"127.0.0.1:3822", "", 401}, {"localhost", "", 401}, {"[::1]:3822", "", 401}, {"MCP.example", "", 401},
		{"mcp.example:443", "https://mcp.example", 401},
		{"evil.example", "", 403}, {"127.0.0.1.evil.example", "", 403}, {"", "", 403},
		{"localhost", "https://evil.example", 403}, {"localhost", "null", 403}, {"localhost", "https://localhost.evil.example", 403},
	} {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("{}"))
		r.Host = c.host
		if c.origin != "" {
			r.Header.Set("Origin", c.origin)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != c.want {
			t.Errorf("host %q, origin %q: %d, want %d", c.host, c.origin, w.Code, c.want)
		}
	}
}
