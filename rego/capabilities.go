package rego

import (
	"slices"
	"strings"
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"
)

// Capabilities returns the functions and features that conditions can use, as the file that `opa check
// --capabilities` reads. If tests is true, it returns the functions and features of test files.
func Capabilities(tests bool) ([]byte, error) {
	if tests {
		return indented(testSandbox())
	}
	return indented(sandbox())
}

// InputSchema returns the JSON schema of the input of a condition, as the file that `opa check
// --schema` reads.
func InputSchema() ([]byte, error) {
	return indented(conditionSchema())
}

// reachOut lists the functions that OPA calls deterministic, although they read the clock or can
// load a schema from the network.
var reachOut = []string{
	"crypto.x509.parse_and_verify_certificates", "crypto.x509.parse_and_verify_certificates_with_options",
	"io.jwt.decode_verify", "json.match_schema", "json.verify_schema",
}

// testSandbox returns the capabilities of test files: every function of OPA whose result depends on
// its arguments alone, and print. Some of them cost too much for conditions. The time of a test bounds
// them, but cannot end a call. A test has no use for writ.items: the conditions under test import it.
var testSandbox = sync.OnceValue(func() *ast.Capabilities {
	c := ast.CapabilitiesForThisVersion(ast.CapabilitiesRegoVersion(ast.RegoV1))
	c.Builtins = slices.DeleteFunc(c.Builtins, func(b *ast.Builtin) bool {
		return b.Nondeterministic || b.IsDeprecated() || slices.Contains(reachOut, b.Name)
	})
	c.Features = slices.DeleteFunc(c.Features, func(f string) bool { return strings.HasPrefix(f, "rego_v2") })
	c.AllowNet = []string{}
	for _, b := range []*ast.Builtin{ast.Print, ast.InternalPrint, ast.InternalTestCase} {
		if !c.ContainsBuiltin(b.Name) {
			c.Builtins = append(c.Builtins, b)
		}
	}
	slices.SortFunc(c.Builtins, func(a, b *ast.Builtin) int { return strings.Compare(a.Name, b.Name) })
	return c
})
