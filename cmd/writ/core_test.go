package main

import (
	"fmt"
	"maps"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"writ/engine"
	"writ/examples"
)

// TestDecision_ExternalEvaluationCore_ARealOPA has a real OPA server, built from
// its module and loaded with what `writ rego --core` writes, decide the examples
// as the built-in engine does; then it is killed under load and started again.
func TestDecision_ExternalEvaluationCore_ARealOPA(t *testing.T) {
	o := &opaServer{bin: buildOPA(t), addr: freeAddr(t), dir: t.TempDir()}
	set, err := examples.Load()
	if err != nil {
		t.Fatal(err)
	}
	data, token := newData(t)
	p := start(t, data, manyEvaluations(t), "--evaluation-core-url=http://"+o.addr+"/v1/data/writ/core/result",
		"--evaluation-core-timeout=5s") // the machine may be busy with other tests
	d := &demo{operator: client{base: p.url, token: token}, set: set}
	if err := d.register(t.Context()); err != nil {
		t.Fatal(err)
	}
	o.export(t, set)
	o.start(t)
	t.Run("decides as the engine does", func(t *testing.T) { decidesAlike(t, p.url, token, set) })
	t.Run("a version that it does not hold", func(t *testing.T) { newVersionIsRefused(t, p, token, set) })
	t.Run("killed under load", func(t *testing.T) { killUnderLoad(t, o, p, token, set) })
}

// decidesAlike evaluates the examples at url and with the built-in engine.
func decidesAlike(t *testing.T, url, token string, set *examples.Set) {
	data, builtin := newData(t)
	p := start(t, data)
	d := &demo{operator: client{base: p.url, token: builtin}, set: set}
	if err := d.register(t.Context()); err != nil {
		t.Fatal(err)
	}
	s, b := newSender(t, token, 1), newSender(t, builtin, 1)
	for i, c := range set.Cases {
		in := exampleIntent(t, set, i)
		got, want := decisionOf(t, s, url, in), decisionOf(t, b, p.url, in)
		for i := range min(len(got.Reasons), len(want.Reasons)) {
			if sameCode(got.Reasons[i], want.Reasons[i]) && saysMore(want.Reasons[i]) {
				got.Reasons[i] = want.Reasons[i]
			}
		}
		if diff := cmp.Diff(want, got); diff != "" || got.Decision != c.Want.String() {
			t.Errorf("%s/%s is decided otherwise by OPA, want %s (-engine +OPA):\n%s", c.Policy, c.Intent, c.Want, diff)
		}
	}
}

// decided is what two cores must agree on.
type decided struct {
	Decision string
	Reasons  []string
}

func sameCode(a, b string) bool {
	codeOfA, _, _ := strings.Cut(a, ":")
	codeOfB, _, _ := strings.Cut(b, ":")
	return codeOfA == codeOfB
}

// saysMore reports whether a reason of the engine's is one that Rego puts in
// fewer words: it names neither the pattern that objected nor that a condition
// which counts as a match could not be evaluated.
func saysMore(reason string) bool {
	return strings.HasPrefix(reason, string(engine.CodeResourceBlocked)) || strings.HasPrefix(reason, string(engine.CodeActionDenied)) ||
		strings.Contains(reason, "could not be evaluated")
}

func decisionOf(t *testing.T, s sender, url string, in intent) decided {
	t.Helper()
	got, err := s.evaluate(url, in)
	if err != nil || got.status != http.StatusOK {
		t.Fatalf("evaluate = %d %s, %v, want 200", got.status, got.body, err)
	}
	var res struct {
		Reasons []string `json:"reasons"`
		Receipt struct {
			Decision string `json:"decision"`
		} `json:"receipt"`
	}
	if err := json.Unmarshal([]byte(got.body), &res); err != nil {
		t.Fatal(err)
	}
	return decided{res.Receipt.Decision, res.Reasons}
}

// exampleIntent is the i-th example under an id of its own.
func exampleIntent(t *testing.T, set *examples.Set, i int) intent {
	t.Helper()
	in := *set.Intents[i]
	in.IntentID = uuid.NewString()
	body, err := json.Marshal(object{"policy_id": in.PolicyID, "intent": &in})
	if err != nil {
		t.Fatal(err)
	}
	return intent{in.IntentID, body}
}

// newVersionIsRefused registers a version that OPA does not hold. What it does
// hold is decided all the same.
func newVersionIsRefused(t *testing.T, p *process, token string, set *examples.Set) {
	doc := *set.Policies["email"]
	doc.Version++
	api := client{base: p.url, token: token}
	if _, err := api.call(t.Context(), http.MethodPost, "/v1/policies/register", object{"policy": doc}, http.StatusCreated); err != nil {
		t.Fatal(err)
	}
	s := newSender(t, token, 1)
	for range 10 {
		for i, c := range set.Cases {
			want := http.StatusOK
			if c.Policy == "email" {
				want = http.StatusInternalServerError
			}
			if got, err := s.evaluate(p.url, exampleIntent(t, set, i)); err != nil || got.status != want {
				t.Fatalf("%s/%s: evaluate = %d %s, %v, want %d", c.Policy, c.Intent, got.status, got.body, err, want)
			}
		}
	}
}

// killUnderLoad kills OPA while intents are sent that it allows. From then on
// nothing is approved and the breaker opens; once OPA is back, so are approvals.
func killUnderLoad(t *testing.T, o *opaServer, p *process, token string, set *examples.Set) {
	allowed := slices.IndexFunc(set.Cases, func(c examples.Case) bool { return c.Policy == "deploys" && c.Want == engine.Allow })
	var dead atomic.Bool // OPA has ended, and is not about to be started
	var approved, refused, wrong atomic.Int64
	release := background(t, 8, func(stop <-chan struct{}) {
		s := newSender(t, token, 1)
		for {
			select {
			case <-stop:
				return
			default:
			}
			in, sentDead := exampleIntent(t, set, allowed), dead.Load()
			got, err := s.evaluate(p.url, in)
			switch {
			case err == nil && got.status == http.StatusOK && strings.Contains(got.body, `"approved":true`):
				approved.Add(1)
				if sentDead && dead.Load() {
					wrong.Add(1)
				}
			case err == nil && got.status == http.StatusInternalServerError && strings.Contains(got.body, "evaluation_core_unavailable"):
				refused.Add(1)
			default:
				t.Errorf("evaluate = %d %s, %v, want 200 or evaluation_core_unavailable", got.status, got.body, err)
				return
			}
		}
	})
	defer release()
	eventually(t, "OPA allows", func() bool { return approved.Load() > 100 })
	o.kill(t)
	dead.Store(true)
	diedAt := time.Now()
	eventually(t, "the breaker opens", func() bool { return strings.Contains(metricsOf(t, p), "\nwrit_core_breaker_state 2\n") })
	before := refused.Load()
	eventually(t, "it refuses", func() bool { return refused.Load() > before+1000 })
	dead.Store(false)
	backAt := time.Now()
	o.start(t)
	before = approved.Load()
	eventually(t, "OPA allows again", func() bool { return approved.Load() > before+100 })
	eventually(t, "the breaker closes", func() bool { return strings.Contains(metricsOf(t, p), "\nwrit_core_breaker_state 0\n") })
	if n := wrong.Load(); n != 0 {
		t.Errorf("%d intents were approved while there was no OPA, want none", n)
	}
	for id, row := range history(t, p.url, token) {
		if row.DecidedAt.After(diedAt) && row.DecidedAt.Before(backAt) {
			t.Errorf("intent %s was decided (%s) while there was no OPA", id, row.Decision)
		}
	}
}

func metricsOf(t *testing.T, p *process) string {
	t.Helper()
	status, text := get(t, p.admin+"/metrics")
	if status != http.StatusOK {
		t.Fatalf("GET /metrics = %d", status)
	}
	return text
}

// eventually waits until cond holds.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !cond(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("after %v still not: %s", patience, what)
		}
	}
}

// opaServer is an OPA that is started and killed.
type opaServer struct {
	bin, addr, dir string
	cmd            *exec.Cmd
}

// buildOPA builds the OPA server of tools/opa.
func buildOPA(t *testing.T) string {
	t.Helper()
	const module = "github.com/open-policy-agent/opa"
	skip := func(why string) {
		fmt.Printf("SKIPPED %s: %s\n", t.Name(), why)
		t.Skip("SKIPPED: " + why)
	}
	if testing.Short() {
		skip("-short does not build an OPA server")
	}
	dir := filepath.Join("..", "..", "tools", "opa")
	if out, err := exec.Command("go", "-C", dir, "list", "-deps", module).CombinedOutput(); err != nil {
		skip(fmt.Sprintf("the modules of OPA's server cannot be had: %v: %.500s", err, out))
	}
	bin := filepath.Join(t.TempDir(), "opa")
	if out, err := exec.Command("go", "-C", dir, "build", "-ldflags=-s -w", "-tags=opa_no_oci", "-o", bin, module).CombinedOutput(); err != nil {
		t.Fatalf("building OPA: %v\n%s", err, out)
	}
	return bin
}

// export loads the directory with the example policies and rules.
func (o *opaServer) export(t *testing.T, set *examples.Set) {
	t.Helper()
	root := filepath.Join("..", "..", "examples")
	args := []string{"rego", "--core", "--rules", filepath.Join(root, "rules.json"), "--out", o.dir}
	for _, name := range slices.Sorted(maps.Keys(set.Policies)) {
		args = append(args, "--policy", filepath.Join(root, "policies", name+".json"))
	}
	if out, err := exec.Command("writ", args...).CombinedOutput(); err != nil {
		t.Fatalf("writ %v: %v\n%s", args, err, out)
	}
}

// start starts OPA and waits until it serves.
func (o *opaServer) start(t *testing.T) {
	t.Helper()
	o.cmd = exec.Command(o.bin, "run", "--server", "--addr", o.addr, "--log-level", "error", "--skip-version-check", o.dir)
	o.cmd.Stdout, o.cmd.Stderr = t.Output(), t.Output()
	if err := o.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.kill(t) })
	eventually(t, "OPA serves", func() bool {
		resp, err := http.Get("http://" + o.addr + "/health")
		if err != nil {
			return false
		}
		return resp.Body.Close() == nil && resp.StatusCode == http.StatusOK
	})
}

// kill ends OPA as kill -9 does, unless it has ended.
func (o *opaServer) kill(t *testing.T) {
	t.Helper()
	if err := o.cmd.Process.Kill(); err == nil {
		_ = o.cmd.Wait() // it was killed
	}
}

// freeAddr returns an address that nothing listens on.
func freeAddr(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}
