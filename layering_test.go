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

// module is what the path of each package of writ begins with. The lists below leave it out.
const module = "writ.example/writ/"

// below are the other rooms that a room may import outside its tests. The rooms of a
// line stand side by side and do not import each other.
var below = map[string][]string{
	"cmd":       {"bench", "api", "authoring", "decision", "rego", "storage", "engine", "examples", "plugs", "sdk"},
	"plugs":     {"sdk"},
	"sdk":       {"storage"},
	"bench":     {"api", "authoring", "decision", "rego", "storage", "engine"},
	"examples":  {"authoring", "engine", "sdk"},
	"api":       {"docs", "authoring", "decision", "rego", "storage", "engine"},
	"authoring": {"rego", "storage", "engine"},
	"decision":  {"rego", "storage", "engine"},
	"rego":      {"engine"},
	"storage":   {"engine"},
	"engine":    {},
	"docs":      {},
}

// plain are the packages of internal that every room may import. They import no room.
var plain = []string{"internal/apikey", "internal/pace", "internal/printable", "internal/scrub", "internal/telemetry", "internal/tlsfiles",
	"internal/toolcall"}

// forTests are the packages of internal that tests alone import. They may import rooms.
var forTests = []string{"internal/freeze", "internal/metricstest", "internal/must", "internal/newcomer", "internal/oracles", "internal/pypi",
	"internal/reference", "internal/scrub/scrubtest", "internal/system", "internal/tlsfiles/tlstest"}

// sole has a library and the only packages that may import it.
var sole = map[string][]string{
	"github.com/gofiber/fiber":         {"api", "bench"},
	"github.com/fasthttp/websocket":    {"api/wire", "bench/load"},
	"github.com/coder/websocket":       {"sdk/go"},
	"github.com/yuin/goldmark":         {"api/manual"},
	"github.com/open-policy-agent/opa": {"rego"},
	"github.com/google/cel-go":         {"engine/condition"},
	"github.com/cockroachdb/pebble":    {"storage/embedded", "storage/embedded/index", "storage/embedded/segment"},
	"go.mongodb.org/mongo-driver":      {"storage/mongodb", "storage/mongodb/mongotest"},
	"github.com/lestrrat-go/jwx":       {"api/operator"},
	"github.com/alecthomas/kong":       {"cmd/writ"},
	"go.yaml.in/yaml/v3":               {"authoring/document", "cmd/writ", "plugs/plug"},
	"github.com/fsnotify/":             {"authoring/suite"},
	"github.com/stripe/":               {"api/billing"},
	"github.com/standard-webhooks/":    {"api/webhook"},
	"github.com/sony/gobreaker":        {"decision/core"},
	"github.com/pelletier/go-toml":     {"internal/scrub"},
	"github.com/modelcontextprotocol/": {"cmd/writ", "plugs/gateway"},
	"github.com/Shopify/toxiproxy":     {"storage/mongodb/mongotest"},

	"go.opentelemetry.io/otel/exporters/otlp/otlplog":   {"storage/decisionlog/otlp"},
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace": {"api/tracing"},
	"github.com/twmb/franz-go":                          {"storage/decisionlog/kafka"},
	"github.com/envoyproxy/go-control-plane":            {"plugs/envoy"},
	"google.golang.org/grpc":                            {"plugs/envoy"},
}

// TestLayering holds that each package belongs to a room, that arrows between rooms
// point down, and that a library is imported where it belongs.
func TestLayering(t *testing.T) {
	for _, p := range list(t) {
		path := strings.TrimPrefix(p.ImportPath, module)
		room := roomOf(path)
		_, known := below[room]
		switch {
		case path+"/" == module: // the tests of the whole tree
		case room == "internal" && !within(plain, path) && !within(forTests, path):
			t.Errorf("%s is neither for every room nor for tests alone: say which in plain or forTests", path)
		case room != "internal" && !known:
			t.Errorf("%s belongs to no room: the rooms are in below", path)
		}
		for _, imp := range p.Imports {
			if ours, ok := strings.CutPrefix(imp, module); ok {
				if reason := refused(path, ours); reason != "" {
					t.Errorf("%s imports %s: %s", path, ours, reason)
				}
			}
			for lib, users := range sole {
				if strings.HasPrefix(imp, lib) && !slices.Contains(users, path) {
					t.Errorf("%s imports %s: only %v may", path, imp, users)
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
	room, _, _ := strings.Cut(path, "/")
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
		{"api", "decision", false},
		{"decision", "api", true},
		{"rego", "storage", true},
		{"engine/condition", "engine/glob", false},
		{"engine", "internal/telemetry", false},
		{"internal/telemetry", "engine", true},
		{"api", "internal/reference", true},
		{"internal/reference", "engine", false},
		{"storage", "cmd/writ", true},
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
