package bench

import (
	"flag"
	"fmt"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var updateReadme = flag.Bool("update", false, "write the table of README.md: make readme-table")

// besideIt names the peers for a reader of README.md, and whether they are in a run.
var besideIt = []struct{ subject, name, short string }{
	{"floor", "a bare Fiber handler", "a bare Fiber handler"},
	{"opa", "OPA with reasons", "OPA"},
	{"opa-lean", "OPA, a lean policy", "OPA, lean"},
	{"opa-log", "with a decision log", "with its log"},
	{"opa-exported", "the exported module, with reasons", "exported"},
	{"cerbos", "Cerbos without audit", "Cerbos"},
	{"cerbos-audit", "with it", "with audit"},
}

// TestReadme_FiguresComeFromResults checks the table "Measured" of README.md. Each figure is made
// from the file in bench/results that has it, so that a new run cannot leave an old figure behind.
func TestReadme_FiguresComeFromResults(t *testing.T) {
	read := func(name string) string {
		text, err := os.ReadFile(name)
		must(t, err)
		return string(text)
	}
	run, _, _ := strings.Cut(read("results/http-evaluate.txt"), "rounds count") // the first run in the file
	beside := func(short bool, figure func(subject string) string) string {
		var all []string
		for _, p := range besideIt {
			if !regexp.MustCompile(`(?m)^ +` + p.subject + ` +closed `).MatchString(run) {
				continue
			}
			name := p.name
			if short {
				name = p.short
			}
			all = append(all, name+": "+figure(p.subject))
		}
		return strings.Join(all, "; ")
	}
	find := func(file, pattern string) float64 {
		m := regexp.MustCompile(`(?m)` + pattern).FindStringSubmatch(read("results/" + file))
		if m == nil {
			t.Fatalf("results/%s has no line like %s", file, pattern)
		}
		n, err := strconv.ParseFloat(m[1], 64)
		must(t, err)
		return n
	}
	ns := func(benchmark string) float64 { return find("go.txt", `^`+benchmark+`(?:-2)?\s+\d+\s+([\d.]+) ns/op`) }
	rate := func(subject string) string {
		return thousands(find("http-evaluate.txt", `^ +`+subject+` +closed +(\d+) `), 3)
	}
	spent := func(subject string) string {
		return fmt.Sprintf("%.0f µs", find("http-evaluate.txt", `^ +`+subject+` +closed +\d+ +[\d.]+ % +([\d.]+) `))
	}
	want := []string{
		fmt.Sprintf("| evaluate a policy with 1,000 rules | %.1f µs, 0 allocations | prepared Rego: %.0f µs |",
			ns("BenchmarkPrepared/engine/rules=1000")/1e3, ns("BenchmarkPrepared/rego/rules=1000")/1e3),
		fmt.Sprintf("| compile a policy | %.0f µs | |", ns("BenchmarkCompilePolicy/own")/1e3),
		fmt.Sprintf("| sign a receipt in a batch of 64 | %.1f µs | one Ed25519 signature: %.0f µs |",
			ns("BenchmarkSeal/batch=64")/64e3, ns("BenchmarkSign")/1e3),
		fmt.Sprintf("| whole durable request, one core | %s requests/s | %s |", rate("writ"), beside(false, rate)),
		fmt.Sprintf("| processor time of such a request | %s | %s |", spent("writ"), beside(true, spent)),
	}
	readme := read("../README.md")
	_, table, _ := strings.Cut(readme, "## Measured\n")
	table, _, _ = strings.Cut(table, "\n## ")
	_, table, _ = strings.Cut(table, "|---|---|---|\n")
	got := strings.TrimSpace(table)
	switch {
	case got == strings.Join(want, "\n"):
	case *updateReadme:
		must(t, os.WriteFile("../README.md", []byte(strings.Replace(readme, got, strings.Join(want, "\n"), 1)), 0o600))
	default:
		t.Errorf("README.md has the figures\n%s\nwant those of bench/results, which make readme-table writes:\n%s", got,
			strings.Join(want, "\n"))
	}
}

// thousands returns n to so many digits, with a comma between thousands.
func thousands(n float64, digits int) string {
	unit := math.Pow10(int(math.Log10(n)) + 1 - digits)
	text := strconv.Itoa(int(math.Round(n/unit) * unit))
	return text[:len(text)-3] + "," + text[len(text)-3:]
}
