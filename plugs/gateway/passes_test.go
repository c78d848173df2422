//nolint:staticcheck // log messages are deprecated in revision 2026-07-28, and clients have them
package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"writ.example/writ/plugs/gateway"
	"writ.example/writ/plugs/plug"
)

// allowing is a writ server that allows everything and keeps the requests.
type allowing struct {
	mu      sync.Mutex
	intents []map[string]any
	records []map[string]any
}

const allowed = `{"ok":true,"approved":true,"reasons":["policy.allowed: version 1 of the policy allows it"],` +
	`"decision_id":"0198f3c2-7a10-7c3e-9d41-5b1f6f0a9e37","receipt":{"decision":"allow",` +
	`"decision_id":"0198f3c2-7a10-7c3e-9d41-5b1f6f0a9e37",` +
	`"digest":"sha256:b6ac64c07aebfa529a11e66abf79d5d2e382a18cd21751607fde6ffdf3bbeb0b","exp":9007199254740991,` +
	`"sig":"AWV4YW1wbGUtY2hhaW4tMDEAAAAAAAAAAQAAAAIAAAGjGFxQewAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAMQBz-HKnCNp7zdZ2` +
	`wdeaYorKAd_imiXmLxjmKovnB6c5obNHVTdoLogrBMhHdvq1HrFhe3p60_u-txNq0frKAQAAAAB5hxJ4xL4e7OyDavZuknLtggLb53STV_rKEdz8wPWgtA",` +
	`"kid":"1IG2tMH7J2wbJZnOf8LJzQitKf7LMvoAElsuDMVM54Y"}}`

func (a *allowing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Intent  map[string]any
		Intents []map[string]any
	}
	data, _ := io.ReadAll(r.Body)
	_ = json.Unmarshal(data, &body)
	a.mu.Lock()
	defer a.mu.Unlock()
	switch r.URL.Path {
	case "/v1/actions/record":
		var record map[string]any
		_ = json.Unmarshal(data, &record)
		a.records = append(a.records, record)
		fmt.Fprint(w, "{}")
	case "/v1/policy/evaluate/batch":
		a.intents = append(a.intents, body.Intents...)
		fmt.Fprintf(w, `{"results":[%s]}`, strings.Join(slices.Repeat([]string{allowed}, len(body.Intents)), ","))
	default:
		a.intents = append(a.intents, body.Intent)
		fmt.Fprint(w, allowed)
	}
}

// through connects a client of a revision to a gateway in front of a server.
func through(
	t testing.TB, behind *mcp.Server, revision string, options *mcp.ClientOptions, change func(*gateway.Config),
) (*mcp.ClientSession, *allowing) {
	t.Helper()
	writ := new(allowing)
	server := httptest.NewServer(writ)
	config := gateway.Config{Server: "s", Log: t.Output(), Settings: plug.Settings{
		URL: server.URL, APIKey: "writ_secret", PolicyID: "p", AgentID: "a", Timeout: 20 * time.Second, Wait: time.Second,
		State: filepath.Join(t.TempDir(), "state"),
	}}
	if change != nil {
		change(&config)
	}
	near, far := mcp.NewInMemoryTransports()
	ctx, cancel := context.WithCancel(context.Background())
	session, err := behind.Connect(ctx, far, nil)
	must(t, err)
	g, err := gateway.Open(ctx, config, near)
	must(t, err)
	client, front := mcp.NewInMemoryTransports()
	done := make(chan error, 1)
	go func() { done <- g.Serve(ctx, front) }()
	c, err := mcp.NewClient(&mcp.Implementation{Name: "t", Version: "1"}, options).
		Connect(ctx, client, &mcp.ClientSessionOptions{ProtocolVersion: revision})
	must(t, err)
	t.Cleanup(func() {
		_ = c.Close()
		cancel()
		<-done
		_ = g.Close()
		_ = session.Close()
		server.Close()
	})
	return c, writ
}

// TestGateway_Passes holds that progress, log messages and a cancellation pass, in each revision.
func TestGateway_Passes(t *testing.T) {
	for _, revision := range []string{"2025-06-18", "2026-07-28"} {
		t.Run(revision, func(t *testing.T) {
			cancelled := make(chan struct{})
			behind := mcp.NewServer(&mcp.Implementation{Name: "behind", Version: "1"}, nil)
			behind.AddTool(&mcp.Tool{Name: "work", InputSchema: json.RawMessage(`{"type":"object"}`)},
				func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
					said := &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: 1, Total: 2, Message: "half"}
					must(t, r.Session.NotifyProgress(ctx, said))
					must(t, r.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "info", Data: "at work"}))
					must(t, r.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "debug", Data: "beneath"}))
					<-ctx.Done()
					close(cancelled)
					return nil, ctx.Err()
				})
			ctx, cancel := context.WithCancel(context.Background())
			heard := make(chan string, 10)
			c, _ := through(t, behind, revision, &mcp.ClientOptions{
				ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
					heard <- fmt.Sprint(r.Params.ProgressToken, " ", r.Params.Progress, " of ", r.Params.Total, " ", r.Params.Message)
				},
				LoggingMessageHandler: func(_ context.Context, r *mcp.LoggingMessageRequest) {
					heard <- fmt.Sprint(r.Params.Level, " ", r.Params.Data)
				},
			}, func(c *gateway.Config) { c.Record = true })
			call := &mcp.CallToolParams{Name: "work", Meta: mcp.Meta{}}
			call.SetProgressToken("mine")
			if revision == "2025-06-18" {
				must(t, c.SetLoggingLevel(ctx, &mcp.SetLoggingLevelParams{Level: "info"}))
			} else {
				call.Meta[mcp.MetaKeyLogLevel] = "info"
			}
			go func() { _, _ = c.CallTool(ctx, call) }()
			got := []string{<-heard, <-heard}
			slices.Sort(got)
			if diff := cmp.Diff([]string{"info at work", "mine 1 of 2 half"}, got); diff != "" {
				t.Errorf("the client heard (-want +got):\n%s", diff)
			}
			cancel()
			<-cancelled
			must(t, c.Close())
			if len(heard) > 0 {
				t.Errorf("the client heard %q as well", <-heard)
			}
		})
	}
}

// TestGateway_Records holds that what became of each call is recorded, and that without --record nothing is.
func TestGateway_Records(t *testing.T) {
	behind := mcp.NewServer(&mcp.Implementation{Name: "behind", Version: "1"}, nil)
	behind.AddTool(&mcp.Tool{Name: "good", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{}, nil
		})
	behind.AddTool(&mcp.Tool{Name: "bad", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{IsError: true}, nil
		})
	behind.AddPrompt(&mcp.Prompt{Name: "greet"}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return &mcp.GetPromptResult{}, nil
	})
	for _, record := range []bool{true, false} {
		c, writ := through(t, behind, "", nil, func(c *gateway.Config) { c.Record = record })
		ctx := context.Background()
		for _, name := range []string{"good", "bad"} {
			_, err := c.CallTool(ctx, &mcp.CallToolParams{Name: name})
			must(t, err)
		}
		_, err := c.GetPrompt(ctx, &mcp.GetPromptParams{Name: "greet"})
		must(t, err)
		if _, err := c.GetPrompt(ctx, &mcp.GetPromptParams{Name: "nobody"}); err == nil {
			t.Error("a prompt that is not there: no error")
		}
		var got []string
		for _, r := range writ.records {
			got = append(got, fmt.Sprint(r["outcome"]))
		}
		var want []string
		if record {
			want = []string{"executed", "failed", "executed", "failed"}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("with --record=%t the outcomes are (-want +got):\n%s", record, diff)
		}
	}
}

// TestGateway_States holds what the gateway says of a tool beside its arguments: hints of the server behind, which
// are no facts, are there however many arguments there are.
func TestGateway_States(t *testing.T) {
	no := false
	behind := mcp.NewServer(&mcp.Implementation{Name: "behind", Version: "1"}, nil)
	nothing := func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{}, nil
	}
	schema := json.RawMessage(`{"type":"object","additionalProperties":true}`)
	behind.AddTool(&mcp.Tool{Name: "plain", InputSchema: schema}, nothing)
	behind.AddTool(&mcp.Tool{Name: "hinted", InputSchema: schema, Annotations: &mcp.ToolAnnotations{
		ReadOnlyHint: true, IdempotentHint: true, DestructiveHint: &no, OpenWorldHint: &no,
	}}, nothing)
	c, writ := through(t, behind, "", nil, nil)
	many := make(map[string]any)
	for i := range 100 {
		many[fmt.Sprint("a", i)] = i
	}
	for _, name := range []string{"plain", "hinted"} {
		_, err := c.CallTool(context.Background(), &mcp.CallToolParams{Name: name, Arguments: many})
		must(t, err)
	}
	for i, want := range []map[string]any{
		{"hint.read_only": "false", "hint.idempotent": "false", "hint.destructive": "true", "hint.open_world": "true"},
		{"hint.read_only": "true", "hint.idempotent": "true", "hint.destructive": "false", "hint.open_world": "false"},
	} {
		metadata, _ := writ.intents[i]["metadata"].(map[string]any)
		if len(metadata) > 64 || metadata["fact.session.tools_sha256"] == nil || metadata["fact.arg.dropped"] == nil {
			t.Errorf("%d members of the metadata: %v", len(metadata), metadata)
		}
		got := make(map[string]any)
		for name, v := range metadata {
			if !strings.HasPrefix(name, "fact.") {
				got[name] = v
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the hints are (-want +got):\n%s", diff)
		}
	}
}

// TestGateway_AuthZEN holds what calls are by the mapping that the server declares, if that counts, and that a
// mapping that cannot be read refuses.
func TestGateway_AuthZEN(t *testing.T) {
	var called int
	call := func(mapping, args string, counts bool) (intents []map[string]any, err error) {
		behind := mcp.NewServer(&mcp.Implementation{Name: "behind", Version: "1"}, nil)
		schema := json.RawMessage(`{"type":"object","additionalProperties":true,"x-authzen-mapping":` + mapping + `}`)
		behind.AddTool(&mcp.Tool{Name: "book", InputSchema: schema},
			func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				called++
				return &mcp.CallToolResult{}, nil
			})
		c, writ := through(t, behind, "", nil, func(c *gateway.Config) { c.AuthZEN = counts })
		_, err = c.CallTool(context.Background(), &mcp.CallToolParams{Name: "book", Arguments: json.RawMessage(args)})
		return writ.intents, err
	}
	const one = `{"evaluation":{"subject":{"type":"identity","id":"$token.sub"},"action":{"name":"book","properties":{"of":"$params.name"}},
		"resource":{"type":"room","id":"$params.arguments.room.id","properties":{"floor":"$params.arguments.?floor","price":"$$5"}},
		"context":{"agent":"$token.?client_id","tags":["a","$params.arguments.n"]}}}`
	const two = `{"evaluations":{"action":{"name":"read"},"resource":{"type":"file","id":"$params.arguments.from"},"evaluations":[{},
		{"action":{"name":"write"},"resource":{"type":"file","id":"$params.arguments.to"}}]}}`
	for _, c := range []struct {
		mapping, args string
		want          []string // action type, resource and metadata beside facts and hints
	}{
		{one, `{"room":{"id":7},"n":1}`, []string{
			"book room/7 action.of=book context.tags=[\"a\",1] resource.price=$5 resource_type=room"}},
		{one, `{"room":{"id":"https://h.example/7"},"n":"x","floor":"3"}`, []string{
			"book https://h.example/7 action.of=book context.tags=[\"a\",\"x\"] resource.floor=3 resource.price=$5 resource_type=room"}},
		{two, `{"from":"/a","to":"b"}`, []string{"read /a resource_type=file", "write file/b resource_type=file"}},
	} {
		intents, err := call(c.mapping, c.args, true)
		must(t, err)
		var got []string
		for _, in := range intents {
			text := fmt.Sprint(in["action_type"], " ", in["resource"])
			metadata, _ := in["metadata"].(map[string]any)
			var more []string
			for name, v := range metadata {
				if !strings.HasPrefix(name, "fact.") && !strings.HasPrefix(name, "hint.") {
					more = append(more, fmt.Sprint(" ", name, "=", v))
				}
			}
			slices.Sort(more)
			got = append(got, text+strings.Join(more, ""))
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s of %s (-want +got):\n%s", c.args, c.mapping, diff)
		}
	}
	intents, err := call(one, `{}`, false)
	if must(t, err); intents[0]["action_type"] != "mcp.s.book" {
		t.Errorf("a mapping that does not count: %v", intents)
	}
	called = 0
	for _, mapping := range []string{
		`{}`, `null`, `[]`, `"x"`, `{"evaluation":{}}`, `{"evaluation":1}`, `{"evaluation":{},"evaluations":{}}`, `{"evaluations":{}}`,
		`{"evaluations":{"evaluations":[]}}`, `{"search":{}}`,
		`{"evaluation":{"action":{"name":"a"},"resource":{"type":"t","id":"$params.arguments.gone"}}}`,
		`{"evaluation":{"action":{"name":"a"},"resource":{"type":"t","id":"$params.arguments.n + 1"}}}`,
		`{"evaluation":{"action":{"name":"a"},"resource":{"type":"t","id":"$token.sub"}}}`,
		`{"evaluation":{"action":{"name":"a"},"resource":{"type":"t","id":"$params.arguments.?gone"}}}`,
		`{"evaluation":{"action":{"name":"$"},"resource":{"type":"t","id":"i"}}}`,
		`{"evaluation":{"action":{"name":{}},"resource":{"type":"t","id":"i"}}}`,
		`{"evaluations":{"evaluations":[{"subject":{"id":"root"},"action":{"name":"a"},"resource":{"type":"t","id":"i"}}]}}`,
	} {
		if intents, err := call(mapping, `{"n":1}`, true); err == nil || !strings.Contains(err.Error(), "x-authzen-mapping of the tool book") {
			t.Errorf("%s: %v, %v, want that the call is refused", mapping, intents, err)
		}
	}
	if called > 0 {
		t.Errorf("%d calls were made", called)
	}
}
