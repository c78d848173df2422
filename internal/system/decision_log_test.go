package system

import (
	"bytes"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"writ.example/writ/storage"
	"writ.example/writ/storage/receipt"
)

func fileText(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	return string(text)
}

// parseLines returns the rows of a decision log. A line that is not whole is one that is being written, or
// that was when its writer was killed.
func parseLines(t *testing.T, text string) (rows []*storage.Record) {
	t.Helper()
	for line := range strings.Lines(text[:strings.LastIndexByte(text, '\n')+1]) {
		r := new(storage.Record)
		if err := json.Unmarshal([]byte(line), r); err != nil {
			t.Fatalf("line %d of the decision log: %v: %q", len(rows)+1, err, line)
		}
		rows = append(rows, r)
	}
	return rows
}

// place returns where a row is in its chain.
func place(t *testing.T, r *storage.Record) receipt.Leaf {
	t.Helper()
	leaf, err := r.Receipt.Inclusion().Leaf(r.Receipt.LeafHash())
	must(t, err)
	return leaf
}

// auditSink checks that a decision log has every row as the API shows it, that rows appear first in the
// order of their chain, and that the log goes back at most as often as there were kills.
func auditSink(t *testing.T, sent []*storage.Record, rows map[string]*storage.Record, kills int) {
	t.Helper()
	seen := make(map[string]bool)
	last, newest := make(map[[16]byte]receipt.Leaf), make(map[[16]byte]receipt.Leaf)
	after := func(a, b receipt.Leaf) bool { return a.Seq > b.Seq || a.Seq == b.Seq && a.Index > b.Index }
	back := 0
	for _, r := range sent {
		if diff := cmp.Diff(rows[r.IntentID], r); diff != "" {
			t.Fatalf("row %s: GET -, decision log +:\n%s", r.DecisionID, diff)
		}
		at := place(t, r)
		if before, ok := last[at.Chain]; ok && !after(at, before) {
			back++
		}
		last[at.Chain] = at
		if seen[r.DecisionID] {
			continue
		}
		if first, ok := newest[at.Chain]; ok && !after(at, first) {
			t.Errorf("row %s is out of its chain's order", r.DecisionID)
		}
		seen[r.DecisionID], newest[at.Chain] = true, at
	}
	if back > kills {
		t.Errorf("rows were sent again %d times, want at most %d, after kills", back, kills)
	}
	if len(seen) != len(rows) {
		t.Errorf("the decision log has %d of %d rows", len(seen), len(rows))
	}
	t.Logf("%d rows, %d lines, %d times back", len(rows), len(sent), back)
}

// sinksOfReplicas kills replicas under load. The files of all replicas together must have every row. While
// a killed replica is away, another one sends what is left of its chain.
func sinksOfReplicas(t *testing.T, c *cluster) {
	c.mortal = true
	dir, flags := t.TempDir(), c.flags
	launch := func(n int) *process {
		c.flags = append(slices.Clip(flags), "--decision-log=file:"+filepath.Join(dir, strconv.Itoa(n)))
		return c.launch(t)
	}
	for n := range 3 {
		c.replicas = append(c.replicas, launch(n))
	}
	register(t, c.replicas[0].url, c.token)
	l := newReplicaLoad(c)
	stop := l.start(t, 8)
	for i := range rounds(2, 20) {
		l.await(t, between)
		n := i % 3
		c.replicas[n].kill(t)
		c.replicas[n] = launch(n)
		l.serve(c.urls())
	}
	l.await(t, between)
	c.replicas[2].kill(t) // for good: the leader sends what is left
	c.replicas = c.replicas[:2]
	l.serve(c.urls())
	l.await(t, between)
	stop()
	l.audit(t)
	rows := history(t, c.replicas[0].url, c.token)
	waitFor(t, "every row", func() bool {
		sent := make(map[string]bool)
		for n := range 3 {
			for _, r := range parseLines(t, fileText(t, filepath.Join(dir, strconv.Itoa(n)))) {
				sent[r.DecisionID] = true
			}
		}
		return len(sent) == len(rows)
	})
	c.stop(t)
	for n := range 3 {
		sent := parseLines(t, fileText(t, filepath.Join(dir, strconv.Itoa(n))))
		of := make(map[string]*storage.Record)
		for _, r := range sent {
			of[r.IntentID] = rows[r.IntentID]
		}
		auditSink(t, sent, of, 3*len(sent))
	}
}

// TestDecisionLog_KilledProcess kills the real binary under load. No row may be missing in the file.
func TestDecisionLog_KilledProcess(t *testing.T) {
	t.Parallel()
	kills := rounds(3, 20)
	data, token := newData(t)
	path := filepath.Join(t.TempDir(), "rows.jsonl")
	flags := []string{manyEvaluations(t), "--decision-log=file:" + path}
	p := start(t, data, flags...)
	register(t, p.url, token)
	l := newLoad(t, token)
	l.serve(p.url)
	workers := l.start(crashWorkers)
	rng := rand.New(rand.NewPCG(5, 6))
	for range kills {
		l.awaitAnswers(t, crashAnswers+rng.IntN(crashAnswers))
		p.kill(t)
		p = start(t, data, flags...)
		l.serve(p.url)
	}
	l.awaitAnswers(t, crashAnswers)
	l.stop()
	workers.Wait()
	rows := history(t, p.url, token)
	p.stop(t)
	auditSink(t, parseLines(t, fileText(t, path)), rows, kills)
}

// serveStdout starts the real binary with standard output as its decision log. It returns the command and
// the addresses of the API and of the metrics.
func serveStdout(t *testing.T, out io.Writer, flags ...string) (cmd *exec.Cmd, url, admin string) {
	t.Helper()
	cmd = command(t, append([]string{"serve", "--addr=127.0.0.1:0", "--admin-addr=127.0.0.1:0", "--decision-log=stdout"}, flags...)...)
	said := new(log)
	cmd.Stdout, cmd.Stderr = out, said
	must(t, cmd.Start())
	waitFor(t, "a server", func() bool {
		for line := range strings.Lines(said.String()) {
			if m := serving.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
				url, admin = m[1], m[2]
			}
		}
		return url != ""
	})
	return cmd, url, admin
}

// TestDecisionLog_Stdout checks that standard output has the rows of all organizations and nothing else.
// A stop in order repeats nothing.
func TestDecisionLog_Stdout(t *testing.T) {
	data, token := newData(t)
	rows := make(map[string]*storage.Record)
	var out bytes.Buffer
	for turn := range 2 {
		cmd, url, _ := serveStdout(t, &out, "--data", string(data))
		if turn == 0 {
			register(t, url, token)
			registerIn(t, url, signed(t, data, canaryOrg), canaryOrg)
		}
		for _, org := range []string{token, signed(t, data, canaryOrg)} {
			for _, action := range []string{"deploy", "delete"} {
				newSender(t, org, 1).decide(t, url, newIntent("bot", action, "k8s/staging/web"))
			}
			maps.Copy(rows, history(t, url, org))
		}
		must(t, cmd.Process.Signal(os.Interrupt))
		must(t, cmd.Wait())
	}
	if len(rows) != 8 {
		t.Errorf("%d rows, want 8", len(rows))
	}
	auditSink(t, parseLines(t, out.String()), rows, 0)
}

// TestDecisionLog_Collector sends rows to a real OpenTelemetry collector, which is killed and started again.
// While it is down, rows wait and are counted. Then every row arrives, in the order of the chain.
func TestDecisionLog_Collector(t *testing.T) {
	if os.Getenv("WRIT_SOAK") != "1" {
		t.Skip("SKIPPED without WRIT_SOAK=1: builds a collector of 190 modules")
	}
	dir, bin := filepath.Join("..", "..", "internal", "tools", "collector"), filepath.Join(t.TempDir(), "collector")
	if out, err := exec.Command("go", "-C", dir, "build", "-o", bin, ".").CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: the modules of the collector cannot be had: %v: %.500s", err, out)
	}
	addr, got := freeAddr(t), new(log)
	collect := func() *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), bin, addr)
		cmd.Stdout, cmd.Stderr = got, new(log)
		must(t, cmd.Start())
		return cmd
	}
	collector := collect()
	data, token := newData(t)
	p := start(t, data, manyEvaluations(t), "--rate-limit-credential=off", "--rate-limit-address=off", "--decision-log=otlp:http://"+addr+"/v1/logs")
	register(t, p.url, token)
	s, rows := newSender(t, token, 1), func() int { return strings.Count(got.String(), "\n") }
	decide := func(n int) {
		for range n {
			s.decide(t, p.url, newIntent("bot", "deploy", "k8s/staging/web"))
		}
	}
	decide(50)
	behind := func(n string) func() bool {
		return func() bool {
			_, text := get(t, p.admin+"/metrics")
			return strings.Contains(text, "writ_decision_log_rows_behind "+n+"\n")
		}
	}
	waitFor(t, "the first rows", func() bool { return rows() == 50 })
	waitFor(t, "their confirmation", behind("0"))
	must(t, collector.Process.Kill())
	_ = collector.Wait() // killed
	decide(250)
	waitFor(t, "the rows behind", behind("250"))
	collector = collect()
	waitFor(t, "all rows", func() bool { return rows() >= 300 })
	all := history(t, p.url, token)
	p.stop(t)
	auditSink(t, parseLines(t, got.String()), all, 1)
	must(t, collector.Process.Signal(os.Interrupt))
	must(t, collector.Wait())
}

// TestDecisionLog_OPA checks rows with OPA's own type of an event, which may have no member that it lacks,
// and lose none.
func TestDecisionLog_OPA(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED in short mode: builds a program with OPA's type")
	}
	dir, bin := filepath.Join("..", "..", "internal", "tools", "opa"), filepath.Join(t.TempDir(), "events")
	if out, err := exec.Command("go", "-C", dir, "build", "-tags=opa_no_oci", "-o", bin, "./events").CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: the modules of OPA cannot be had: %v: %.500s", err, out)
	}
	data, token := newData(t)
	path := filepath.Join(t.TempDir(), "events.jsonl")
	p := start(t, data, "--audit=full", "--decision-log=file:"+path, "--decision-log-format=opa")
	register(t, p.url, token)
	for _, in := range []intent{newIntent("bot", "deploy", "k8s/prod"), newIntent("other", "deploy", "k8s/b"), newIntent("bot", "drop", "k8s/b?token=secret-1234")} {
		newSender(t, token, 1).decide(t, p.url, in)
	}
	rows := history(t, p.url, token)
	p.stop(t)
	text := fileText(t, path)
	cmd := exec.Command(bin)
	cmd.Stdin = strings.NewReader(text)
	seen, stderr, code := output(t, cmd)
	if code != 0 {
		t.Fatalf("OPA's EventV1 does not hold the events: %s\n%s", stderr, text)
	}
	var sent, got []map[string]any
	for _, c := range []struct {
		text string
		into *[]map[string]any
	}{{text, &sent}, {seen, &got}} {
		for line := range strings.Lines(c.text) {
			var event map[string]any
			must(t, json.Unmarshal([]byte(line), &event))
			*c.into = append(*c.into, event)
		}
	}
	if diff := cmp.Diff(sent, got); diff != "" {
		t.Errorf("the events: sent -, as OPA has them +:\n%s", diff)
	}
	erased := 0
	for _, event := range got {
		r := rows[event["input"].(map[string]any)["intent"].(map[string]any)["intent_id"].(string)]
		if r == nil || r.DecisionID != event["decision_id"] || r.Decision.String() != event["result"].(map[string]any)["decision"] {
			t.Errorf("event %v is not of row %+v", event, r)
		}
		names, _ := event["erased"].([]any)
		if erased += len(names); r != nil && len(names) != len(r.LeftOut) {
			t.Errorf("erased = %v, left_out = %v", names, r.LeftOut)
		}
	}
	if len(got) != 3 || erased == 0 {
		t.Errorf("%d events, %d members erased, want 3 events and some", len(got), erased)
	}
}

// TestDecisionLog_StalledReader checks that a sink that takes nothing delays no decision and no stop.
func TestDecisionLog_StalledReader(t *testing.T) {
	data, token := newData(t)
	r, w, err := os.Pipe()
	must(t, err)
	defer r.Close()
	cmd, url, admin := serveStdout(t, w, "--data", string(data), manyEvaluations(t), "--rate-limit-credential=off",
		"--rate-limit-address=off")
	register(t, url, token)
	s := newSender(t, token, 1)
	for range 400 { // many times what a pipe keeps
		s.decide(t, url, newIntent("bot", "deploy", "k8s/staging/web"))
	}
	waitFor(t, "the rows behind", func() bool {
		_, text := get(t, admin+"/metrics")
		return regexp.MustCompile(`(?m)^writ_decision_log_rows_behind [1-9]`).MatchString(text)
	})
	must(t, cmd.Process.Signal(os.Interrupt))
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		must(t, err)
	case <-time.After(patience):
		t.Fatal("writ serve does not stop while nobody reads its standard output")
	}
}
