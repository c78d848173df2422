package api

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"writ/engine"
)

const errorsFile = "../docs/errors.md"

// errorRows returns the rows of a table in docs/errors.md. head is the first line of the table. Each row is returned as
// "code: second column".
func errorRows(t *testing.T, head string) []string {
	t.Helper()
	text, err := os.ReadFile(errorsFile)
	must(t, err)
	_, table, found := strings.Cut(string(text), head+"\n")
	if !found {
		t.Fatalf("%s has no table %s", errorsFile, head)
	}
	table, _, _ = strings.Cut(table, "\n\n")
	var rows []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| ([^|]+) \\|").FindAllStringSubmatch(table, -1) {
		rows = append(rows, m[1]+": "+m[2])
	}
	slices.Sort(rows)
	return rows
}

// balancerFile has a problem document. The balancer answers with it if no replica can.
const balancerFile = "../deploy/haproxy/haproxy.cfg"

// balancerProblem returns the problem in balancerFile. It fails the test unless the problem has the form of writ's own
// problems.
func balancerProblem(t *testing.T) (p problem) {
	t.Helper()
	text, err := os.ReadFile(balancerFile)
	must(t, err)
	answers := regexp.MustCompile(`(?m)^ *http-error status (\d+) content-type (\S+) .*string '(.*)'$`).FindAllStringSubmatch(string(text), -1)
	if len(answers) != 1 {
		t.Fatalf("%s has %d answers of its own, want 1", balancerFile, len(answers))
	}
	must(t, json.Unmarshal([]byte(answers[0][3]), &p, json.RejectUnknownMembers(true)))
	if answers[0][1] != fmt.Sprint(p.Status) || answers[0][2] != typeProblem || p.Type != "urn:writ:problem:"+p.Code || p.Title == "" || p.Detail == "" || p.OK {
		t.Errorf("%s answers %s as %s with status %s", balancerFile, answers[0][3], answers[0][2], answers[0][1])
	}
	return p
}

// TestErrors_EveryCodeIsDocumented compares the table of codes with openapi.yaml and with the problem of the balancer.
// Other tests compare every answer with openapi.yaml.
func TestErrors_EveryCodeIsDocumented(t *testing.T) {
	var doc struct {
		Components struct {
			Responses map[string]struct {
				Content map[string]struct {
					Schema struct {
						AllOf []yaml.Node `yaml:"allOf"`
					}
				}
			}
		}
	}
	must(t, yaml.Unmarshal(descriptionYAML, &doc))
	statuses := map[string]map[int]bool{codeMethodNotAllowed: {http.StatusMethodNotAllowed: true}} // no operation has it
	for _, response := range doc.Components.Responses {
		for _, part := range response.Content[typeProblem].Schema.AllOf {
			var of struct {
				Properties struct {
					Status struct{ Const int }
					Code   struct {
						Const string
						Enum  []string
					}
				}
			}
			must(t, part.Decode(&of))
			for _, code := range append(of.Properties.Code.Enum, of.Properties.Code.Const) {
				if code == "" {
					continue
				}
				if statuses[code] == nil {
					statuses[code] = make(map[int]bool)
				}
				statuses[code][of.Properties.Status.Const] = true
			}
		}
	}
	balancer := balancerProblem(t)
	statuses[balancer.Code] = map[int]bool{balancer.Status: true}
	var want []string
	for code, of := range statuses {
		list := fmt.Sprint(slices.Sorted(maps.Keys(of)))
		want = append(want, code+": "+strings.ReplaceAll(strings.Trim(list, "[]"), " ", ", "))
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, errorRows(t, "| code | status | what happened | what to do |")); diff != "" {
		t.Errorf("%s (-answered +written):\n%s", errorsFile, diff)
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
	if diff := cmp.Diff(want, errorRows(t, "| code | amounts to | when |")); diff != "" {
		t.Errorf("%s (-evaluated +written):\n%s", errorsFile, diff)
	}
}
