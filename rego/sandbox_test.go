package rego

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/open-policy-agent/opa/v1/ast"

	"writ.example/writ/internal/must"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares got with the file testdata/name.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want := must.Get(os.ReadFile(file))(t)
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-want +got), -update rewrites it:\n%s", file, diff)
	}
}

// TestSandbox_EveryBuiltinIsAllowedOrRefused compares all built-in functions of OPA with a golden
// file. If an upgrade brings new functions, the test fails until somebody has reviewed each of
// them.
func TestSandbox_EveryBuiltinIsAllowedOrRefused(t *testing.T) {
	var b strings.Builder
	for _, fn := range ast.CapabilitiesForThisVersion().Builtins {
		verdict := "refused"
		if sandbox().ContainsBuiltin(fn.Name) {
			verdict = "allowed"
		}
		fmt.Fprintf(&b, "%s %s\n", verdict, fn.Name)
	}
	golden(t, "builtins.golden", b.String())
}

func TestSandbox_AllowedNamesExist(t *testing.T) {
	seen := map[string]bool{}
	for _, name := range allowed() {
		switch b, ok := ast.BuiltinMap[name]; {
		case !ok:
			t.Errorf("allowed() has %q, which OPA does not", name)
		case seen[name]:
			t.Errorf("allowed() has %q twice", name)
		case b.Nondeterministic || b.IsDeprecated():
			t.Errorf("allowed() has %q, which is nondeterministic or deprecated", name)
		}
		seen[name] = true
	}
}

// TestRefusals_NameWhatToWrite checks that each function that a condition cannot call has one reason
// and one replacement, and that docs/rego-functions.md shows them.
func TestRefusals_NameWhatToWrite(t *testing.T) {
	page := string(must.Get(os.ReadFile("../docs/rego-functions.md"))(t))
	seen := map[string]bool{"print": true} // a condition may call print, which does nothing
	for _, r := range refusals() {
		for _, name := range strings.Fields(r.names) {
			if seen[name] {
				t.Errorf("%s has two refusals", name)
			}
			if seen[name] = true; ast.BuiltinMap[name] == nil || sandbox().ContainsBuiltin(name) {
				t.Errorf("%s is refused, but a condition can call it, or OPA does not have it", name)
			}
		}
		names := "`" + strings.Join(strings.Fields(r.names), "` `") + "`"
		if row := fmt.Sprintf("| %s | %s | %s |\n", names, r.why, r.instead); !strings.Contains(page, row) {
			t.Errorf("docs/rego-functions.md does not have the row\n%s", row)
		}
	}
	for _, fn := range ast.CapabilitiesForThisVersion().Builtins {
		if !sandbox().ContainsBuiltin(fn.Name) && !seen[fn.Name] {
			t.Errorf("%s has no refusal", fn.Name)
		}
	}
}

func TestDecision_Rules_NoNetworkClockOrEnvironment(t *testing.T) {
	outside := []string{
		"http.send", "opa.runtime", "net.lookup_ip_addr", "time.now_ns", "rand.intn", "uuid.rfc4122",
		"io.jwt.decode_verify", "crypto.x509.parse_and_verify_certificates",
		"crypto.x509.parse_and_verify_certificates_with_options", "rego.parse_module", "trace",
	}
	for _, fn := range ast.CapabilitiesForThisVersion().Builtins {
		if (fn.Nondeterministic || slices.Contains(outside, fn.Name)) && sandbox().ContainsBuiltin(fn.Name) {
			t.Errorf("the sandbox allows %s", fn.Name)
		}
	}
	if net := sandbox().AllowNet; net == nil || len(net) != 0 {
		t.Errorf("AllowNet = %#v, want an empty list: nil allows every host", net)
	}
}

// TestSandbox_NamesTheRefusedFunction checks that the error for a refused function has its name and
// place. It leaves out functions that cannot be written in a condition.
func TestSandbox_NamesTheRefusedFunction(t *testing.T) {
	for _, fn := range ast.CapabilitiesForThisVersion().Builtins {
		if sandbox().ContainsBuiltin(fn.Name) || fn.Infix != "" || fn.Name == "print" || strings.HasPrefix(fn.Name, "internal.") {
			continue
		}
		args := make([]string, fn.Decl.Arity())
		for i := range args {
			args[i] = "input.intent.resource"
		}
		_, err := CompileCondition(fmt.Sprintf("true\n%s(%s)", fn.Name, strings.Join(args, ", ")))
		want := "2:1: the built-in function " + fn.Name + " cannot be called: "
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("CompileCondition(%s) = %v, want %q", fn.Name, err, want)
		}
	}
}
