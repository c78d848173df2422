package writ_test

import (
	"encoding/json"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// pkg is what `go list -json` says of a package.
type pkg struct {
	ImportPath   string
	Imports      []string
	TestImports  []string
	XTestImports []string
}

// TestLayering holds the tree of ARCHITECTURE.md: who may import whom, and
// which package alone may import which library.
func TestLayering(t *testing.T) {
	pkgs := list(t)
	allowed := map[string][]string{ // writ's own packages that a package may import outside its tests
		"writ/engine":            {"writ/engine/condition", "writ/engine/glob", "writ/engine/resource"},
		"writ/engine/condition":  {"writ/engine/glob", "writ/engine/resource"},
		"writ/engine/glob":       {"writ/engine/resource"},
		"writ/engine/resource":   {},
		"writ/ledger/receipt":    {},
		"writ/rego":              {"writ/engine", "writ/engine/condition", "writ/engine/glob", "writ/engine/resource"},
		"writ/document":          {"writ/engine", "writ/engine/condition"},
		"writ/document/schema":   {"writ/engine", "writ/engine/condition"},
		"writ/lint":              {"writ/engine", "writ/engine/condition", "writ/engine/glob", "writ/engine/resource"},
		"writ/suite":             {"writ/document", "writ/engine", "writ/engine/condition", "writ/lint", "writ/rego"},
		"writ/workspace":         {"writ/document", "writ/engine"},
		"writ/apikey":            {},
		"writ/scrub":             {"writ/apikey"},
		"writ/storage":           {"writ/engine", "writ/ledger/receipt"},
		"writ/storage/mongodb":   {"writ/engine", "writ/ledger/receipt", "writ/storage", "writ/telemetry"},
		"writ/storage/retention": {"writ/storage", "writ/telemetry"},
		"writ/storage/registry":  {"writ/engine", "writ/ledger/receipt", "writ/storage"},
		"writ/storage/lease":     {"writ/engine/condition", "writ/storage"},
		"writ/ledger":            {"writ/engine", "writ/engine/condition", "writ/ledger/receipt", "writ/storage", "writ/storage/lease", "writ/telemetry"},
		"writ/transfer":          {"writ/engine", "writ/ledger", "writ/ledger/receipt", "writ/storage", "writ/storage/registry"},
		"writ/admission":         {},
		"writ/approval":          {"writ/engine", "writ/ledger", "writ/storage", "writ/storage/registry", "writ/telemetry"},
		"writ/decision":          {"writ/admission", "writ/approval", "writ/decision/budget", "writ/engine", "writ/engine/condition", "writ/ledger", "writ/storage", "writ/telemetry"},
		"writ/api":               {"writ/admission", "writ/apikey", "writ/approval", "writ/decision", "writ/document/schema", "writ/engine", "writ/engine/condition", "writ/engine/resource", "writ/ledger", "writ/ledger/receipt", "writ/storage", "writ/storage/registry", "writ/webhook", "writ/telemetry"},
		"writ/examples":          {"writ/engine", "writ/suite"},
		"writ/billing":           {"writ/engine", "writ/storage"},
		"writ/webhook":           {"writ/engine", "writ/engine/condition", "writ/storage", "writ/storage/registry", "writ/telemetry"},
		"writ/decision/core":     {"writ/engine", "writ/engine/condition", "writ/engine/resource", "writ/telemetry"},
		"writ/decision/budget":   {"writ/engine", "writ/engine/condition", "writ/storage", "writ/storage/lease"},

		"writ/storage/embedded/segment": {},

		"writ/telemetry": {},
	}
	for path, own := range allowed {
		p, ok := pkgs[path]
		if !ok {
			t.Errorf("%s is gone: mend this table", path)
		}
		for _, imp := range p.Imports {
			if strings.HasPrefix(imp, "writ/") && !slices.Contains(own, imp) {
				t.Errorf("%s imports %s: only %v are below it", path, imp, own)
			}
		}
	}

	sole := map[string][]string{ // a library and the only packages that may import it
		"github.com/gofiber/fiber":         {"writ/api", "writ/bench"},
		"github.com/open-policy-agent/opa": {"writ/rego"},
		"github.com/google/cel-go":         {"writ/engine/condition"},
		"github.com/cockroachdb/pebble":    {"writ/storage/embedded", "writ/storage/embedded/segment"},
		"go.mongodb.org/mongo-driver":      {"writ/storage/mongodb", "writ/storage/mongodb/mongotest"},
		"github.com/lestrrat-go/jwx":       {"writ/api"},
		"github.com/alecthomas/kong":       {"writ/cmd/writ"},
		"go.yaml.in/yaml/v3":               {"writ/document", "writ/api"},
		"github.com/fsnotify/":             {"writ/cmd/writ"},
		"github.com/stripe/":               {"writ/billing"},
		"github.com/standard-webhooks/":    {"writ/webhook"},
		"github.com/sony/gobreaker":        {"writ/decision/core"},
		"github.com/pelletier/go-toml":     {"writ/scrub"},
		"github.com/Shopify/toxiproxy":     {"writ/storage/mongodb/mongotest"},
	}
	for _, p := range pkgs {
		for _, imp := range p.Imports {
			for lib, users := range sole {
				if strings.HasPrefix(imp, lib) && !slices.Contains(users, p.ImportPath) {
					t.Errorf("%s imports %s: only %v may", p.ImportPath, imp, users)
				}
			}
			if strings.HasPrefix(imp, "writ/cmd/") {
				t.Errorf("%s imports %s: only a binary wires", p.ImportPath, imp)
			}
		}
	}
}

// list returns every package of the module by import path.
func list(t *testing.T) map[string]pkg {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports,TestImports,XTestImports", "./...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	pkgs := make(map[string]pkg)
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := dec.Decode(&p); err == io.EOF {
			return pkgs
		} else if err != nil {
			t.Fatalf("decoding go list: %v", err)
		}
		pkgs[p.ImportPath] = p
	}
}
