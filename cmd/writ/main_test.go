package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/rogpeppe/go-internal/testscript"

	"writ.example/writ/decision"
	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
)

// patience bounds every wait for a process.
const patience = 30 * time.Second

var update = flag.Bool("update", false, "rewrite the golden files of the scripts")

// TestMain makes this test binary available as the program writ in PATH. Scripts and tests run
// it as a process of its own.
func TestMain(m *testing.M) {
	// Without this, every process would sleep for a second at its end under the race detector.
	if err := os.Setenv("GORACE", os.Getenv("GORACE")+" atexit_sleep_ms=0"); err != nil {
		panic(err)
	}
	testscript.Main(m, map[string]func(){"writ": mainAt, "files-mcp": filesMCP})
}

// Tests set these variables for the processes that they start.
const (
	clockAhead  = "CLOCK_AHEAD"  // how far the clocks of the processes are ahead
	wrongEngine = "WRONG_ENGINE" // if set, decisions are verified by a query that denies everything
)

// panickingHost is a host for tests. If the program sends it a request, the transport panics.
// The panic stands for any mistake in a library.
const panickingHost = "panics.invalid"

type panicking struct{ http.RoundTripper }

func (p panicking) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Host == panickingHost {
		panic("a request was sent to " + panickingHost)
	}
	return p.RoundTripper.RoundTrip(r)
}

// mainAt runs main with the clock of clockAhead, the queries of wrongEngine and the transport
// that panics.
func mainAt() {
	http.DefaultTransport = panicking{http.DefaultTransport}
	if s := os.Getenv(clockAhead); s != "" {
		by, err := time.ParseDuration(s)
		if err == nil {
			err = advanceClock(by)
		}
		if err != nil {
			panic(err)
		}
	}
	if os.Getenv(wrongEngine) != "" {
		mainWith(kong.Bind(prepareQuery(func(*engine.ActionPolicy, []engine.Rule, condition.Lists, []engine.Library) (decision.Query, error) {
			return denier{}, nil
		})))
	}
	main()
}

// denier is a query whose decision is always a deny.
type denier struct{}

func (denier) Evaluate(*engine.Input) (engine.Decision, []engine.Code, error) {
	return engine.Deny, []engine.Code{engine.CodeUsageLimit}, nil
}

func (denier) Size() int                  { return 0 }
func (denier) Fits(engine.Decision) error { return nil }
func (denier) Reads() engine.RegoReads    { return engine.RegoReads{Resource: true, Agent: true} }

func TestScript(t *testing.T) {
	dir, err := os.Getwd()
	must(t, err)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("EXAMPLES", filepath.Join(dir, "../../examples"))
			env.Setenv("GORACE", os.Getenv("GORACE"))
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":      exits,
			"waitline":   waitLine,
			"http":       request,
			"mode":       mode,
			"listen":     listen,
			"parsesrego": parsesRego,
		},
	})
}

// exits runs a program and fails unless its exit code is CODE:
//
//	exits 2 writ serve --nope
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM [ARG…]")
	}
	err := ts.Exec(args[1], args[2:]...)
	got := 0
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if strconv.Itoa(got) != args[0] {
		ts.Fatalf("%s = exit code %d, want %s", strings.Join(args[1:], " "), got, args[0])
	}
}

// waitLine waits until a file has a match of a regular expression. It puts the groups of the
// match into variables:
//
//	waitline out 'serves on (\S+)' URL
func waitLine(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: waitline FILE REGEXP [VAR…]")
	}
	re, err := regexp.Compile("(?m)" + args[1])
	ts.Check(err)
	var text []byte
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		text, err = os.ReadFile(ts.MkAbs(args[0]))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			ts.Check(err)
		}
		m := re.FindSubmatch(text)
		if m == nil {
			continue
		}
		for i, name := range args[2:] {
			ts.Setenv(name, string(m[i+1]))
		}
		return
	}
	ts.Fatalf("%s has no match of %s after %v:\n%s", args[0], args[1], patience, text)
}

// request sends a request and fails unless the answer has the given status. If $TOKEN is set,
// the request has it as its bearer token. The body of the answer becomes stdout. A request body
// that starts with @ names a file.
//
//	http POST $URL/v1/policy/evaluate 200 @intent.json
func request(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 || len(args) > 4 {
		ts.Fatalf("usage: http METHOD URL STATUS [BODY|@FILE]")
	}
	var body string
	if len(args) == 4 {
		body = args[3]
	}
	if name, ok := strings.CutPrefix(body, "@"); ok {
		body = ts.ReadFile(name)
	}
	req, err := http.NewRequest(args[0], args[1], strings.NewReader(body))
	ts.Check(err)
	req.Header.Set("Content-Type", "application/json")
	if token := ts.Getenv("TOKEN"); token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	client := http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	ts.Check(err)
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	ts.Check(err)
	fmt.Fprintf(ts.Stdout(), "%s\n", got)
	if strconv.Itoa(resp.StatusCode) != args[2] {
		ts.Fatalf("%s %s = %s, want %s\n%s", args[0], args[1], resp.Status, args[2], got)
	}
}

// mode checks the permissions of files:
//
//	mode 0600 data/signing-key.pem
func mode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: mode OCTAL FILE…")
	}
	for _, name := range args[1:] {
		info, err := os.Stat(ts.MkAbs(name))
		ts.Check(err)
		if got := fmt.Sprintf("%04o", info.Mode().Perm()); got != args[0] {
			ts.Fatalf("mode of %s = %s, want %s", name, got, args[0])
		}
	}
}

// listen occupies a free port until the script ends. It puts the address into a variable:
//
//	listen TAKEN
func listen(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: listen VAR")
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	ts.Defer(func() { ts.Check(ln.Close()) })
	ts.Setenv(args[0], ln.Addr().String())
}

// parsesRego checks that every file in a directory is a Rego v1 module:
//
//	parsesrego modules
func parsesRego(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: parsesrego DIR")
	}
	names, err := filepath.Glob(filepath.Join(ts.MkAbs(args[0]), "*.rego"))
	ts.Check(err)
	if len(names) == 0 {
		ts.Fatalf("no modules in %s", args[0])
	}
	for _, name := range names {
		_, err := ast.ParseModule(name, ts.ReadFile(name))
		ts.Check(err)
	}
}

// must ends the test if there is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
