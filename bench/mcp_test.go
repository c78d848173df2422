//go:build linux

package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	writ "writ.example/writ/sdk/go"
)

// serveMCP is an MCP server with a tool that does nothing. It does not return.
func serveMCP() {
	s := mcp.NewServer(&mcp.Implementation{Name: "nothing", Version: "1"}, nil)
	s.AddTool(&mcp.Tool{Name: "nothing", InputSchema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}}}`)},
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "done"}}}, nil
		})
	_ = s.Run(context.Background(), &mcp.StdioTransport{})
	os.Exit(0)
}

// BenchmarkMCP measures a call of a tool through writ mcp, beside a server whose decisions are durable. In turn with
// it a call of the same server without the gateway and a decision alone are measured. p50-ms and p99-ms are of the
// call through the gateway, direct-p50-ms and decision-p50-ms of the other two. of-parts is the first over their
// sum, and of-2ms the first over the 2 ms that it may take.
func BenchmarkMCP(b *testing.B) {
	program := filepath.Join(b.TempDir(), "writ")
	if said, err := exec.Command("go", "build", "-o", program, "writ.example/writ/cmd/writ").CombinedOutput(); err != nil {
		b.Fatalf("building writ: %v\n%s", err, said)
	}
	const policyID = "0c0ffee0-0000-4000-8000-00000000000a"
	url, key := servedFor(b, program, policyID)
	client, err := writ.New(writ.Config{URL: url, APIKey: key, PolicyID: policyID, AgentID: "mcp/bench", Timeout: 5 * time.Second})
	must(b, err)
	nothing := exec.Command(os.Args[0])
	nothing.Env = append(os.Environ(), "BENCH_TEST_MCP=1")
	gateway := exec.Command(program, "mcp", "--server", "s", "--state", filepath.Join(b.TempDir(), "state"), "--", os.Args[0])
	gateway.Env = slices.Concat(nothing.Env, []string{"WRIT_URL=" + url, "WRIT_API_KEY=" + key, "WRIT_POLICY_ID=" + policyID, "WRIT_AGENT_ID=mcp/bench"})
	ctx := context.Background()
	connect := func(cmd *exec.Cmd) *mcp.ClientSession {
		cmd.Stderr = b.Output()
		c, err := mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1"}, nil).
			Connect(ctx, &mcp.CommandTransport{Command: cmd}, nil)
		must(b, err)
		b.Cleanup(func() { _ = c.Close() })
		return c
	}
	direct, through := connect(nothing), connect(gateway)
	call := func(c *mcp.ClientSession) {
		r, err := c.CallTool(ctx, &mcp.CallToolParams{Name: "nothing", Arguments: map[string]string{"path": "/srv/shop/a"}})
		if err != nil || r.IsError {
			b.Fatalf("the call: %+v, %v", r, err)
		}
	}
	var all [3][]time.Duration
	timed := func(i int, do func()) {
		start := time.Now()
		do()
		all[i] = append(all[i], time.Since(start))
	}
	for b.Loop() {
		timed(0, func() { call(through) })
		timed(1, func() { call(direct) })
		timed(2, func() {
			_, err := client.Require(ctx, writ.Intent{
				ActionType: "mcp.s.nothing", Resource: "/srv/shop/a", Metadata: map[string]string{"fact.arg.path": "/srv/shop/a"},
			})
			must(b, err)
		})
	}
	for i := range all {
		slices.Sort(all[i])
	}
	ms := func(i, share int) float64 {
		return float64(all[i][len(all[i])*share/100].Microseconds()) / 1000
	}
	b.ReportMetric(ms(0, 50), "p50-ms")
	b.ReportMetric(ms(0, 99), "p99-ms")
	b.ReportMetric(ms(1, 50), "direct-p50-ms")
	b.ReportMetric(ms(2, 50), "decision-p50-ms")
	b.ReportMetric(ms(0, 50)/(ms(1, 50)+ms(2, 50)), "of-parts")
	b.ReportMetric(ms(0, 50)/2, "of-2ms")
}

// servedFor starts a server with a policy that allows everything, and returns its URL and a key for plugs.
func servedFor(b *testing.B, program, policyID string) (url, key string) {
	data := filepath.Join(b.TempDir(), "data")
	serve := exec.Command(program, "serve", "--addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0", "--data", data)
	out, err := serve.StdoutPipe()
	must(b, err)
	must(b, serve.Start())
	b.Cleanup(func() {
		_ = serve.Process.Kill()
		_ = serve.Wait()
	})
	lines := bufio.NewScanner(out)
	for url == "" && lines.Scan() {
		if m := regexp.MustCompile(`writ serves on (\S+);`).FindStringSubmatch(lines.Text()); m != nil {
			url = m[1]
		}
	}
	go func() {
		for lines.Scan() {
		}
	}()
	operator, err := exec.Command(program, "token", "operator", "--org", "bench", "--data", data).Output()
	must(b, err)
	post := func(path, body string) (answer map[string]any) {
		req, err := http.NewRequest(http.MethodPost, url+path, bytes.NewReader([]byte(body)))
		must(b, err)
		req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(operator)))
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(req)
		must(b, err)
		defer resp.Body.Close()
		must(b, json.NewDecoder(resp.Body).Decode(&answer))
		return answer
	}
	post("/v1/policies/register", fmt.Sprintf(`{"policy":{"policy_id":%q,"version":1,"organization_id":"bench","agent_id":"**",`+
		`"allowed_action_types":["**"],"status":"active","updated_at":"2026-11-01T09:00:00Z"}}`, policyID))
	token := post("/v1/tokens", fmt.Sprintf(
		`{"name":"plug","scopes":["policy:evaluate","facts:assert"],"policy_id":%q}`, policyID))
	return url, fmt.Sprint(token["token"])
}
