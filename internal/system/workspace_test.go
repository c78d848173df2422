package system

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ.example/writ/engine"
	"writ.example/writ/examples"
	"writ.example/writ/storage/ledger"
)

// author is a user of writ who has files and a credential.
type author struct {
	*testing.T
	dir, url, token string
}

// writ runs a command and returns its output. It fails the test unless the exit code is want.
func (a *author) writ(want int, args ...string) (out, stderr string) {
	a.Helper()
	cmd := command(a, append(args, a.dir)...)
	cmd.Env = append(os.Environ(), "WRIT_URL="+a.url, "WRIT_API_KEY="+a.token)
	out, stderr, got := output(a, cmd)
	if got != want {
		a.Fatalf("writ %v = exit code %d, want %d\n%s%s", args, got, want, out, stderr)
	}
	return out, stderr
}

// files returns the contents of the files.
func (a *author) files() map[string]string {
	a.Helper()
	all := make(map[string]string)
	err := filepath.WalkDir(a.dir, func(name string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(name)
		all[strings.TrimPrefix(name, a.dir)] = string(data)
		return err
	})
	must(a, err)
	return all
}

func (a *author) write(name, text string) {
	a.Helper()
	name = filepath.Join(a.dir, name)
	must(a, os.MkdirAll(filepath.Dir(name), 0o755))
	must(a, os.WriteFile(name, []byte(text), 0o600))
}

// rules returns the server's rules.
func (a *author) rules() (rules []engine.Rule) {
	a.Helper()
	newClient(a.T, a.url, a.token).do(a, http.MethodGet, "/v1/rules?limit=500", nil, http.StatusOK, &rules)
	return rules
}

func (a *author) create(rule object) {
	a.Helper()
	newClient(a.T, a.url, a.token).do(a, http.MethodPost, "/v1/rules", rule, http.StatusCreated, nil)
}

// newAuthor starts a server and returns an author with an empty directory.
func newAuthor(t *testing.T) *author {
	t.Helper()
	data, token := newData(t)
	p := start(t, data, plansFlag(t, object{"free": object{
		"name": "free", "evaluations": 1000, "agents": 5, "policies": 10, "rules": 5000, "retention_days": 7, // as many rules as the tests make
	}}))
	return &author{t, filepath.Join(t.TempDir(), "org"), p.url, token}
}

// oddNames are names of rules that a file system or YAML could misread.
var oddNames = []string{
	"a/b/../c", "Ünïcode ☃ 日本", "CASE", "case", "null", "yes", "~", "1", "1e3", "2026-11-01", "- x", "# not a comment", "a: b", "{x}", "[x]",
	"'", `"`, `\n`, "%", "@at", "`tick", "|", ">", "&a", "*a", "!tag", "? q", "a #b", "trailing:", "<<", "=", "same", "same",
}

// oddConditions has each form of a condition, and texts that are hard to write.
var oddConditions = []string{
	`{}`,
	`{ "action_type" : "deploy",  "cost.amount_minor":{"$gt":5000} }`,
	`{"metadata.env":{"$in":["prod","no","on","2026-11-01","1.0","null"," x "]},"metadata.a: b":"# c"}`,
	`{"all":[{"field":"cost.amount_minor","op":"gt","value":5000},{"any":[{"not":{"field":"action_type","op":"eq","value":"x"}}]}]}`,
	`{"cel":"intent.action_type == 'deploy' &&\n  // a comment # twice\n  intent.resource != \"x\"\n"}`,
	`{"cel":"  true\n"}`,
	`{"rego":"package x\n\nimport rego.v1\n\nmatch if {\n\tinput.intent.action_type == \"a\"\n}\n"}`,
	`{"rego":"input.intent.metadata.window == \"freeze\""}`,
	`{"metadata.quote":"it's \"x\" \\ \u2028 \u0001"}`,
}

// TestWorkspace_RoundTrips checks that a push after a pull changes nothing. The files must be
// the same byte for byte.
func TestWorkspace_RoundTrips(t *testing.T) {
	a := newAuthor(t)
	for i, name := range oddNames {
		a.create(object{"name": name, "condition": oddConditions[i%len(oddConditions)], "action": `{ "effect":"block" }`, "priority": i - 9})
	}
	for i := range 200 {
		a.create(object{
			"name": fmt.Sprintf("rule %d", i), "description": "of\ttwo\nlines: #1", "condition": oddConditions[i%len(oddConditions)],
			"action": `{"decision":"deny","reason":"a: {b}, 'c' # d"}`, "priority": 100 * (i % 3),
		})
	}
	p := object{
		"policy_id": testPolicy, "version": 1, "organization_id": examples.Organization, "agent_id": "*", "allowed_action_types": []string{},
		"denied_action_types": []string{}, "blocked_resource_patterns": []string{"# x", "{a,b}/**", "yes"}, "max_cost_minor": 9007199254740991,
		"status": "active", "updated_at": "2026-11-01T09:00:00.123456789+02:00",
	}
	api := newClient(t, a.url, a.token)
	api.do(t, http.MethodPost, "/v1/policies/register", object{"policy": p}, http.StatusCreated, nil)
	rules, changes := a.rules(), a.changes(len(oddNames)+200+1)

	a.writ(exitOK, "pull")
	pulled := a.files()
	if len(pulled) != 3 {
		t.Fatalf("pulled %d files, want the policy, the rules and a file of Rego", len(pulled))
	}
	for _, verb := range []string{"diff", "push", "pull"} {
		if out, errs := a.writ(exitOK, verb); errs != "" || verb != "push" && out != "" {
			t.Errorf("writ %s prints %s%s, want nothing", verb, out, errs)
		}
		if diff := cmp.Diff(pulled, a.files()); diff != "" {
			t.Errorf("writ %s changed files (-pulled +now):\n%s", verb, diff)
		}
	}
	if out, _ := a.writ(exitOK, "fmt", "--check"); out != "" {
		t.Errorf("pulled files are not in canonical form: %s", out)
	}
	if got := a.changes(0); got != changes {
		t.Errorf("the server has %d changes, want %d", got, changes)
	}
	if diff := cmp.Diff(rules, a.rules()); diff != "" {
		t.Errorf("the rules have changed:\n%s", diff)
	}

	// The push into another organization gives the same rules in the same order.
	b := newAuthor(t)
	b.dir = a.dir
	if _, errs := b.writ(exitInvalid, "push", "--yes"); !strings.Contains(errs, `is also the name of the rule in`) {
		t.Errorf("pushing two rules of one name prints %s", errs)
	}
	text := strings.Replace(a.files()["/rules.yaml"], "name: same\n", "name: not the same\n", 1)
	b.write("rules.yaml", text)
	b.writ(exitOK, "push", "--yes")
	if got := len(b.rules()); got != len(rules) {
		t.Errorf("another server got %d rules, want %d", got, len(rules))
	}
	if got := a.files()["/rules.yaml"]; got != text {
		t.Error("pushing to another server changed the ids in the files")
	}
	b.writ(exitOK, "diff")
}

// changes waits until as many changes as wanted are signed, and returns their number.
func (a *author) changes(want int) (n int) {
	a.Helper()
	waitFor(a.T, "the changes to be signed", func() bool {
		var page struct {
			Data []ledger.Change `json:"data"`
		}
		newClient(a.T, a.url, a.token).do(a, http.MethodGet, "/v1/changes?limit=500", nil, http.StatusOK, &page)
		n = len(page.Data)
		return n >= want
	})
	return n
}

// TestWorkspace_APushThatFailsIsRepeated checks a push after a failed push. The server leaves
// one request without an answer, and has carried it out or not. The next push must complete the
// first, and no rule may be made twice.
func TestWorkspace_APushThatFailsIsRepeated(t *testing.T) {
	const files = `# Four rules.
name: first
condition: {action_type: a}
action: {decision: deny}
priority: 1
---
name: second
condition: {action_type: b}
action: {decision: deny}
priority: 2
isActive: false
---
name: third
condition: {action_type: c}
action: {decision: allow}
---
policy_id: 0c0ffee0-0000-4000-8000-00000000beef
version: 1
organization_id: demo
agent_id: "*"
allowed_action_types: [a]
status: active
updated_at: 2026-11-01T09:00:00Z
`
	for _, done := range []bool{false, true} {
		for nth := int64(1); nth <= 5; nth++ {
			t.Run(fmt.Sprintf("request=%d/done=%v", nth, done), func(t *testing.T) {
				a := newAuthor(t)
				a.writ(exitOK, "pull")
				a.write("all.yaml", files)
				server := a.url
				a.url = failing(t, server, nth, done)
				_, errs := a.writ(exitFailed, "push", "--yes")
				if !strings.Contains(errs, "changes are pushed: push again for the others") {
					t.Errorf("a push that fails prints %s", errs)
				}
				a.url = server
				a.writ(exitOK, "push", "--yes")
				if rules := a.rules(); len(rules) != 3 || rules[1].Name != "second" || rules[1].IsActive || rules[1].Condition != `{"action_type":"b"}` {
					t.Errorf("the server has %v", rules)
				}
				pushed := a.files()
				if text := pushed["/all.yaml"]; strings.Count(text, "\nid: ") != 3 || !strings.HasPrefix(text, "# Four rules.\n") {
					t.Errorf("the file holds\n%s", text)
				}
				a.writ(exitOK, "diff")
				a.writ(exitOK, "pull")
				if diff := cmp.Diff(pushed, a.files()); diff != "" {
					t.Errorf("writ pull changed files:\n%s", diff)
				}
			})
		}
	}
}

// failing returns the address of a proxy that answers the nth change with a 502. If done is
// set, the proxy has passed the change on.
func failing(t *testing.T, server string, nth int64, done bool) string {
	t.Helper()
	var changes atomic.Int64
	return proxied(t, server, func(w http.ResponseWriter, r *http.Request, server http.Handler) {
		if r.Method == http.MethodGet || changes.Add(1) != nth {
			server.ServeHTTP(w, r)
			return
		}
		if done {
			server.ServeHTTP(httptest.NewRecorder(), r)
		}
		w.WriteHeader(http.StatusBadGateway)
	})
}

// proxied returns the address of a proxy. f answers each request and can use the server.
func proxied(t *testing.T, server string, f func(w http.ResponseWriter, r *http.Request, server http.Handler)) string {
	t.Helper()
	target, err := url.Parse(server)
	must(t, err)
	proxy := httputil.NewSingleHostReverseProxy(target)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { f(w, r, proxy) }))
	t.Cleanup(s.Close)
	return s.URL
}

// TestWorkspace_FindsRulesByIDThenByName checks which of the server's rules a rule in a file
// belongs to.
func TestWorkspace_FindsRulesByIDThenByName(t *testing.T) {
	a := newAuthor(t)
	for _, name := range []string{"one", "two", "two"} {
		a.create(object{"name": name, "condition": "{}", "action": `{"decision":"deny"}`})
	}
	const rule = "name: %s\ncondition: {action_type: x}\naction: {decision: deny}\npriority: 100\nisActive: true\n"
	a.write("rules.yaml", fmt.Sprintf(rule, "two"))
	if _, errs := a.writ(exitInvalid, "push", "--yes"); !strings.Contains(errs, "rules.yaml:1:") || !strings.Contains(errs, "is the name of 2 rules on the server") {
		t.Errorf("a rule that could be two prints %s", errs)
	}
	a.write("rules.yaml", fmt.Sprintf(rule, "new")+"---\n"+fmt.Sprintf(rule, "new"))
	if _, errs := a.writ(exitInvalid, "push", "--yes"); !strings.Contains(errs, "rules.yaml:7:") || !strings.Contains(errs, "is also the name of the rule in") {
		t.Errorf("two rules that could be one print %s", errs)
	}
	var id string
	for _, r := range a.rules() {
		if r.Name == "two" {
			id = r.ID
		}
	}
	a.write("rules.yaml", fmt.Sprintf(rule, "one")+"---\nid: "+id+"\n"+fmt.Sprintf(rule, "renamed"))
	if out, _ := a.writ(exitOK, "push", "--yes"); !strings.Contains(out, "found by its name") || !strings.Contains(out, `name: "two" -> "renamed"`) {
		t.Errorf("the push prints %s", out)
	}
	if got := len(a.rules()); got != 3 {
		t.Errorf("the server has %d rules, want 3", got)
	}
}

// TestWorkspace_OverwritesNoLaterChange checks that a push does not overwrite a change that
// somebody else made after the plan.
func TestWorkspace_OverwritesNoLaterChange(t *testing.T) {
	for _, prune := range []bool{false, true} {
		t.Run(fmt.Sprintf("prune=%v", prune), func(t *testing.T) {
			a := newAuthor(t)
			a.create(object{"name": "one", "condition": "{}", "action": `{"decision":"deny"}`})
			a.writ(exitOK, "pull")
			id, text := a.rules()[0].ID, a.files()["/rules.yaml"]
			args := []string{"push", "--yes"}
			if prune {
				text, args = strings.Replace(text, id, "", 1), append(args, "--prune")
				text = strings.Replace(strings.Replace(text, "id: \n", "", 1), "name: one", "name: two", 1)
			}
			a.write("rules.yaml", strings.Replace(text, "priority: 100", "priority: 7", 1))
			server := a.url
			a.url = interposed(t, server, func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, id) }, func() {
				if err := newClient(t, server, a.token).call(http.MethodPatch, "/v1/rules/"+id, object{"priority": 9}, http.StatusOK, nil); err != nil {
					t.Error(err)
				}
			})
			if _, errs := a.writ(exitFailed, args...); !strings.Contains(errs, "rule_changed") {
				t.Errorf("the push prints %s", errs)
			}
			a.url = server
			for _, r := range a.rules() {
				if r.ID == id && r.Priority == 9 {
					return
				}
			}
			t.Errorf("the rules are %v, want one of the priority 9", a.rules())
		})
	}
}

// interposed returns the address of a proxy. Before the proxy passes on a matching request, it
// calls f.
func interposed(t *testing.T, server string, matches func(*http.Request) bool, f func()) string {
	t.Helper()
	return proxied(t, server, func(w http.ResponseWriter, r *http.Request, server http.Handler) {
		if matches(r) {
			f()
		}
		server.ServeHTTP(w, r)
	})
}
