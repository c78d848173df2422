package system

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"writ.example/writ/authoring/suite"
	"writ.example/writ/examples"
)

// TestRego_OPATestPasses runs a real `opa test` on the output of `writ rego --input`. The tests
// must pass for every example and every recipe, including recipes with counters.
func TestRego_OPATestPasses(t *testing.T) {
	opa := buildOPA(t)
	set, err := examples.Load()
	must(t, err)
	const dir = "../../examples/"
	for name := range set.Policies {
		opaPasses(t, opa, dir+"policies/"+name+".yaml", dir+"rules.yaml", writeIntents(t, set, name))
	}
	recipes, err := filepath.Glob(dir + "recipes/*/suite_test.yaml")
	must(t, err)
	if len(recipes) < 6 {
		t.Errorf("%d recipes, want more", len(recipes))
	}
	for _, name := range recipes {
		suites, err := new(suite.Loader).Load(name)
		must(t, err)
		var intents []string
		for _, s := range suites {
			for i, c := range s.Cases {
				if c.Input.Intent == nil { // the case's intent is refused as invalid
					continue
				}
				if _, err := c.Input.Intent.Readings(); err != nil { // such an intent has no input
					continue
				}
				intents = append(intents, filepath.Join(t.TempDir(), fmt.Sprintf("case-%d.json", i)))
				text, err := json.Marshal(c.Input.Intent)
				must(t, err)
				must(t, os.WriteFile(intents[len(intents)-1], text, 0o600))
			}
		}
		recipe := filepath.Dir(name)
		opaPasses(t, opa, filepath.Join(recipe, "policy.yaml"), filepath.Join(recipe, "rules.yaml"), intents)
	}
	const network = dir + "rego/network/"
	opaPasses(t, opa, dir+"policies/deploys.yaml", network+"rules.yaml", writeIntents(t, set, "deploys"), "--libraries", network+"lib")
}

// TestOPATestsFiles runs `opa test` on the Rego files of each example, without writ. The run must
// pass and include every test.
func TestOPATestsFiles(t *testing.T) {
	opa := buildOPA(t)
	dirs, err := filepath.Glob(filepath.Join("..", "..", "examples", "rego", "*"))
	if err != nil || len(dirs) == 0 {
		t.Fatalf("the examples of Rego in files are %v, %v", dirs, err)
	}
	for _, dir := range dirs {
		files, err := filepath.Glob(filepath.Join(dir, "*.rego"))
		must(t, err)
		if libraries := filepath.Join(dir, "lib"); exists(libraries) {
			files = append(files, libraries)
		}
		text, err := exec.Command(opa, append([]string{"test", "-v"}, files...)...).CombinedOutput()
		if err != nil || !strings.Contains(string(text), "PASS: 3/3") {
			t.Errorf("opa test of %s: %v, want PASS: 3/3\n%s", dir, err, text)
		}
		if out, err := exec.Command(opa, append([]string{"fmt", "--fail", "-l"}, files...)...).CombinedOutput(); err != nil {
			t.Errorf("opa fmt would change %s: %v\n%s", dir, err, out)
		}
	}
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// opaPasses exports a policy with rules and intents, and runs the tests of the export with `opa
// test`.
func opaPasses(t *testing.T, opa, policy, rules string, intents []string, more ...string) {
	t.Helper()
	out := t.TempDir()
	args := append([]string{"rego", "--policy", policy, "--rules", rules, "--out", out}, more...)
	for _, intent := range intents {
		args = append(args, "--input", intent)
	}
	if text, err := command(t, args...).CombinedOutput(); err != nil {
		t.Fatalf("writ %v: %v\n%s", args, err, text)
	}
	text, err := exec.Command(opa, "test", out).CombinedOutput()
	if want := fmt.Sprintf("PASS: %d/%d", len(intents), len(intents)); err != nil || !strings.Contains(string(text), want) {
		t.Errorf("opa test of %s: %v, want %s\n%s", policy, err, want, text)
	}
}

// writeIntents writes the intents of a policy's suite into files.
func writeIntents(t *testing.T, set *examples.Set, policy string) (files []string) {
	t.Helper()
	dir := t.TempDir()
	for i, c := range set.Cases {
		if c.Policy != policy {
			continue
		}
		text, err := json.Marshal(set.Intents[i])
		must(t, err)
		file := filepath.Join(dir, fmt.Sprintf("intent-%d.json", i))
		must(t, os.WriteFile(file, text, 0o600))
		files = append(files, file)
	}
	if len(files) == 0 {
		t.Fatalf("%s has no intents", policy)
	}
	return files
}

// opaServer is an OPA server that tests start and kill.
type opaServer struct {
	bin, addr, dir string
	cmd            *exec.Cmd
}

// buildOPA builds the OPA server of internal/tools/opa.
func buildOPA(t *testing.T) string {
	t.Helper()
	const module = "github.com/open-policy-agent/opa"
	if testing.Short() {
		t.Skip("SKIPPED in short mode: builds an OPA server")
	}
	dir := filepath.Join("..", "..", "internal", "tools", "opa")
	if out, err := exec.Command("go", "-C", dir, "list", "-deps", module).CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: the modules of OPA's server cannot be had: %v: %.500s", err, out)
	}
	bin := filepath.Join(t.TempDir(), "opa")
	if out, err := exec.Command("go", "-C", dir, "build", "-ldflags=-s -w", "-tags=opa_no_oci", "-o", bin, module).CombinedOutput(); err != nil {
		t.Fatalf("building OPA: %v\n%s", err, out)
	}
	return bin
}

// export writes the example policies and rules to OPA's directory.
func (o *opaServer) export(t *testing.T, set *examples.Set, rules string) {
	t.Helper()
	args := []string{"rego", "--core", "--rules", rules, "--out", o.dir}
	for _, name := range slices.Sorted(maps.Keys(set.Policies)) {
		args = append(args, "--policy", filepath.Join("..", "..", "examples", "policies", name+".yaml"))
	}
	if out, err := command(t, args...).CombinedOutput(); err != nil {
		t.Fatalf("writ %v: %v\n%s", args, err, out)
	}
}

// start starts OPA and waits until it serves.
func (o *opaServer) start(t *testing.T) {
	t.Helper()
	o.cmd = exec.Command(o.bin, "run", "--server", "--addr", o.addr, "--log-level", "error", "--skip-version-check", o.dir)
	o.cmd.Stdout, o.cmd.Stderr = t.Output(), t.Output()
	must(t, o.cmd.Start())
	t.Cleanup(func() { o.kill(t) })
	waitFor(t, "OPA to serve", func() bool {
		resp, err := http.Get("http://" + o.addr + "/health")
		if err != nil {
			return false
		}
		return resp.Body.Close() == nil && resp.StatusCode == http.StatusOK
	})
}

// kill kills OPA as kill -9 does. It does nothing if OPA has ended.
func (o *opaServer) kill(t *testing.T) {
	t.Helper()
	if err := o.cmd.Process.Kill(); err == nil {
		_ = o.cmd.Wait() // an error, because OPA was killed
	}
}
