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
	ImportPath string
	Imports    []string
}

// below are the other rooms that a room may import outside its tests. The rooms of a
// line stand side by side and do not import each other.
var below = map[string][]string{
	"cmd":       {"bench", "api", "authoring", "decision", "rego", "storage", "engine", "examples", "plugs", "sdk"},
	"plugs":     {"sdk"},
	"sdk":       {"storage"},
	"bench":     {"api", "authoring", "decision", "rego", "storage", "engine"},
	"examples":  {"authoring", "engine", "sdk"},
	"api":       {"authoring", "decision", "rego", "storage", "engine"},
	"authoring": {"rego", "storage", "engine"},
	"decision":  {"rego", "storage", "engine"},
	"rego":      {"engine"},
	"storage":   {"engine"},
	"engine":    {},
}

// plain are the packages of internal that every room may import. They import no room.
var plain = []string{"writ/internal/apikey", "writ/internal/printable", "writ/internal/scrub", "writ/internal/telemetry",
	"writ/internal/tlsfiles", "writ/internal/toolcall"}

// forTests are the packages of internal that tests alone import. They may import rooms.
var forTests = []string{"writ/internal/freeze", "writ/internal/metricstest", "writ/internal/must", "writ/internal/newcomer", "writ/internal/oracles", "writ/internal/pypi", "writ/internal/reference",
	"writ/internal/scrub/scrubtest", "writ/internal/system", "writ/internal/tlsfiles/tlstest"}

// sole has a library and the only packages that may import it.
var sole = map[string][]string{
	"github.com/gofiber/fiber":         {"writ/api", "writ/bench"},
	"github.com/open-policy-agent/opa": {"writ/rego"},
	"github.com/google/cel-go":         {"writ/engine/condition"},
	"github.com/cockroachdb/pebble":    {"writ/storage/embedded", "writ/storage/embedded/index", "writ/storage/embedded/segment"},
	"go.mongodb.org/mongo-driver":      {"writ/storage/mongodb", "writ/storage/mongodb/mongotest"},
	"github.com/lestrrat-go/jwx":       {"writ/api/operator"},
	"github.com/alecthomas/kong":       {"writ/cmd/writ"},
	"go.yaml.in/yaml/v3":               {"writ/authoring/document", "writ/cmd/writ", "writ/plugs/plug"},
	"github.com/fsnotify/":             {"writ/authoring/suite"},
	"github.com/stripe/":               {"writ/api/billing"},
	"github.com/standard-webhooks/":    {"writ/api/webhook"},
	"github.com/sony/gobreaker":        {"writ/decision/core"},
	"github.com/pelletier/go-toml":     {"writ/internal/scrub"},
	"github.com/modelcontextprotocol/": {"writ/cmd/writ", "writ/plugs/gateway"},
	"github.com/Shopify/toxiproxy":     {"writ/storage/mongodb/mongotest"},

	"go.opentelemetry.io/otel/exporters/otlp/otlplog":   {"writ/storage/decisionlog/otlp"},
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace": {"writ/api/tracing"},
	"github.com/twmb/franz-go":                          {"writ/storage/decisionlog/kafka"},
	"github.com/envoyproxy/go-control-plane":            {"writ/plugs/envoy"},
	"google.golang.org/grpc":                            {"writ/plugs/envoy"},
}

// TestLayering holds that each package belongs to a room, that arrows between rooms
// point down, and that a library is imported where it belongs.
func TestLayering(t *testing.T) {
	for _, p := range list(t) {
		room := roomOf(p.ImportPath)
		_, known := below[room]
		switch {
		case p.ImportPath == "writ": // the tests of the whole tree
		case room == "internal" && !within(plain, p.ImportPath) && !within(forTests, p.ImportPath):
			t.Errorf("%s is neither for every room nor for tests alone: say which in plain or forTests", p.ImportPath)
		case room != "internal" && !known:
			t.Errorf("%s belongs to no room: the rooms are in below", p.ImportPath)
		}
		for _, imp := range p.Imports {
			if strings.HasPrefix(imp, "writ/") {
				if reason := refused(p.ImportPath, imp); reason != "" {
					t.Errorf("%s imports %s: %s", p.ImportPath, imp, reason)
				}
			}
			for lib, users := range sole {
				if strings.HasPrefix(imp, lib) && !slices.Contains(users, p.ImportPath) {
					t.Errorf("%s imports %s: only %v may", p.ImportPath, imp, users)
				}
			}
		}
	}
}

// refused returns why the package at path may not import imp, or nothing.
func refused(path, imp string) string {
	from, to := roomOf(path), roomOf(imp)
	switch {
	case within(forTests, imp):
		if !within(forTests, path) && !strings.HasSuffix(path, "test") {
			return "it is for tests alone"
		}
	case within(plain, imp), from == to, within(forTests, path):
	case from == "internal":
		return "a package that every room may import imports no room"
	case !slices.Contains(below[from], to):
		return from + " may import " + strings.Join(below[from], ", ")
	}
	return ""
}

// roomOf returns the folder at the top that the package at path is in.
func roomOf(path string) string {
	room, _, _ := strings.Cut(strings.TrimPrefix(path, "writ/"), "/")
	return room
}

// within reports whether the package at path is one of those or below one.
func within(those []string, path string) bool {
	return slices.ContainsFunc(those, func(one string) bool { return path == one || strings.HasPrefix(path, one+"/") })
}

// TestLayering_Refuses holds that the rules refuse what they are for.
func TestLayering_Refuses(t *testing.T) {
	for _, c := range []struct {
		path, imp string
		refused   bool
	}{
		{"writ/api", "writ/decision", false},
		{"writ/decision", "writ/api", true},
		{"writ/rego", "writ/storage", true},
		{"writ/engine/condition", "writ/engine/glob", false},
		{"writ/engine", "writ/internal/telemetry", false},
		{"writ/internal/telemetry", "writ/engine", true},
		{"writ/api", "writ/internal/reference", true},
		{"writ/internal/reference", "writ/engine", false},
		{"writ/storage", "writ/cmd/writ", true},
	} {
		if got := refused(c.path, c.imp); (got != "") != c.refused {
			t.Errorf("refused(%s, %s) = %q, want refused: %v", c.path, c.imp, got, c.refused)
		}
	}
}

// list returns every package of the module.
func list(t *testing.T) (pkgs []pkg) {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports", "./...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := dec.Decode(&p); err == io.EOF {
			return pkgs
		} else if err != nil {
			t.Fatalf("decoding go list: %v", err)
		}
		pkgs = append(pkgs, p)
	}
}
