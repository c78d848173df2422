package api

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"writ.example/writ/engine"
)

const errorsFile = "../docs/errors.md"

// errorRows returns the rows of the table in docs/errors.md whose first line is head. Each row is
// returned as "code: column", where column 0 follows the code.
func errorRows(t *testing.T, head string, column int) []string {
	t.Helper()
	text, err := os.ReadFile(errorsFile)
	must(t, err)
	_, table, found := strings.Cut(string(text), head+"\n")
	if !found {
		t.Fatalf("%s has no table %s", errorsFile, head)
	}
	table, _, _ = strings.Cut(table, "\n\n")
	var rows []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (.+) \\|$").FindAllStringSubmatch(table, -1) {
		rows = append(rows, m[1]+": "+strings.Split(m[2], " | ")[column])
	}
	slices.Sort(rows)
	return rows
}

// balancerFile configures the balancer.
const balancerFile = "../deploy/haproxy/haproxy.cfg"

// balancerProblems returns the problems with which the balancer answers. It fails the test unless they have the form of
// writ's own problems.
func balancerProblems(t *testing.T) (all []problem) {
	t.Helper()
	config, err := os.ReadFile(balancerFile)
	must(t, err)
	for _, m := range regexp.MustCompile(`(?m)^ *errorfile (\d+) /usr/local/etc/haproxy/(\S+)$`).FindAllStringSubmatch(string(config), -1) {
		text, err := os.ReadFile(filepath.Join(filepath.Dir(balancerFile), m[2]))
		must(t, err)
		resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(text)), nil)
		must(t, err)
		body, err := io.ReadAll(resp.Body)
		must(t, errors.Join(err, resp.Body.Close()))
		var p problem
		must(t, json.Unmarshal(body, &p, json.RejectUnknownMembers(true)))
		if fmt.Sprint(resp.StatusCode) != m[1] || p.Status != resp.StatusCode || resp.Header.Get("Content-Type") != typeProblem ||
			!bytes.HasSuffix(text, body) || p.Type != "urn:writ:problem:"+p.Code || p.Title == "" || p.Detail == "" || p.OK {
			t.Errorf("%s is no problem of status %s:\n%s", m[2], m[1], text)
		}
		all = append(all, p)
	}
	for _, status := range []int{http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout} {
		if !slices.ContainsFunc(all, func(p problem) bool { return p.Status == status }) {
			t.Errorf("%s has no answer of its own for %d", balancerFile, status)
		}
	}
	return all
}

// TestBalancer_TimeoutsFitEachOther compares the balancer's timeouts with writ's. The balancer must wait
// longer than writ may take, except for evaluations, which another replica may decide.
func TestBalancer_TimeoutsFitEachOther(t *testing.T) {
	text, err := os.ReadFile(balancerFile)
	must(t, err)
	timeout := func(section, name string) time.Duration {
		_, part, found := strings.Cut(string(text), "\n"+section+"\n")
		part, _, _ = strings.Cut(part, "\n\n")
		m := regexp.MustCompile(`\b` + name + ` (\d+m?s)\b`).FindStringSubmatch(part)
		if !found || m == nil {
			t.Fatalf("%s has no %q in %q", balancerFile, name, section)
		}
		d, err := time.ParseDuration(m[1])
		must(t, err)
		return d
	}
	limits := DefaultLimits()
	server, wait := timeout("defaults", "timeout server"), timeout("backend writ", "set-timeout server")
	client, evaluation := timeout("defaults", "timeout client"), timeout("backend decisions", "timeout server")
	for what, c := range map[string]struct{ long, short time.Duration }{
		"a request and the time to handle it":        {server, limits.Handle + limits.Read},
		"a look-up that waits and the longest wait":  {wait, maxWait*time.Second + limits.Handle/2},
		"a caller and the longest answer":            {client, max(server, wait)},
		"a caller and an evaluation asked twice":     {client, 2 * (evaluation + timeout("defaults", "timeout connect"))},
		"a request and an evaluation":                {server, evaluation},
		"headers and what writ allows for them":      {timeout("defaults", "timeout http-request"), limits.Read},
		"writ's idle connections and the balancer's": {limits.Idle, timeout("defaults", "timeout http-keep-alive")},
		"an evaluation and a check of a replica":     {evaluation, timeout("defaults", "timeout check")},
	} {
		if c.long <= c.short {
			t.Errorf("%s: %s is the first, want it longer than the second, %s", what, c.long, c.short)
		}
	}
}

// TestErrors_EveryCodeIsDocumented compares the table of codes with openapi.yaml and with the problems of the balancer.
// Other tests compare every answer with openapi.yaml.
func TestErrors_EveryCodeIsDocumented(t *testing.T) {
	statuses := map[string]map[int]bool{codeMethodNotAllowed: {http.StatusMethodNotAllowed: true}} // no operation has it
	for _, item := range mustContract(t).model.Paths.PathItems.FromOldest() {
		for _, op := range item.GetOperations().FromOldest() {
			for status, response := range op.Responses.Codes.FromOldest() {
				n, err := strconv.Atoi(status)
				must(t, err)
				for _, code := range problemCodes(response) {
					if statuses[code] == nil {
						statuses[code] = make(map[int]bool)
					}
					statuses[code][n] = true
				}
			}
		}
	}
	for _, p := range balancerProblems(t) {
		if statuses[p.Code] == nil {
			statuses[p.Code] = make(map[int]bool)
		}
		statuses[p.Code][p.Status] = true
	}
	var want []string
	for code, of := range statuses {
		list := fmt.Sprint(slices.Sorted(maps.Keys(of)))
		want = append(want, code+": "+strings.ReplaceAll(strings.Trim(list, "[]"), " ", ", "))
	}
	slices.Sort(want)
	const head = "| code | status | retryable | what happened | what to do |"
	if diff := cmp.Diff(want, errorRows(t, head, 0)); diff != "" {
		t.Errorf("%s (-answered +written):\n%s", errorsFile, diff)
	}
	again := maps.Clone(retryable)
	for _, p := range balancerProblems(t) {
		if own, known := again[p.Code]; known && own != p.Retryable {
			t.Errorf("%s is retryable: %t of the balancer, %t of writ", p.Code, p.Retryable, own)
		}
		again[p.Code] = p.Retryable
	}
	want = nil
	for code := range statuses {
		want = append(want, code+": "+map[bool]string{true: "yes", false: "no"}[again[code]])
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, errorRows(t, head, 1)); diff != "" {
		t.Errorf("%s, retryable (-answered +written):\n%s", errorsFile, diff)
	}
	for code := range retryable {
		if statuses[code] == nil {
			t.Errorf("%s is retryable and no code of an answer", code)
		}
	}
}

func TestErrors_EveryReasonIsDocumented(t *testing.T) {
	var want []string
	for _, code := range engine.Codes() {
		if outcome, known := code.Outcome(); known {
			want = append(want, fmt.Sprintf("%s: %s", code, outcome))
		}
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, errorRows(t, "| code | amounts to | when |", 0)); diff != "" {
		t.Errorf("%s (-evaluated +written):\n%s", errorsFile, diff)
	}
}
