package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"writ.example/writ/authoring/document"
	"writ.example/writ/engine"
	"writ.example/writ/rego"
)

// pulled pulls the documents of a server into the directory work of a new directory, and returns
// the new directory.
func pulled(t *testing.T, server http.Handler, prepare func(outside string)) (outside string, err error) {
	t.Helper()
	outside = t.TempDir()
	work := filepath.Join(outside, "work")
	if err := os.Mkdir(work, 0o755); err != nil {
		t.Fatal(err)
	}
	if prepare != nil {
		prepare(outside)
	}
	w, err := Open(work, engine.Options{CompileRego: rego.CompileCondition})
	if err != nil {
		t.Fatal(err)
	}
	call := func(_ context.Context, r Request, v any) (http.Header, error) {
		answer := httptest.NewRecorder()
		server.ServeHTTP(answer, httptest.NewRequest(r.Method, r.Path, nil))
		return answer.Header(), json.Unmarshal(answer.Body.Bytes(), v)
	}
	documents, err := Fetch(t.Context(), call)
	if err != nil {
		return outside, err
	}
	plan, err := w.Compare(documents)
	if err != nil {
		return outside, err
	}
	_, err = plan.Pull(PullOptions{Force: true, Prune: true, Schemas: "http://localhost/schemas/"})
	return outside, err
}

// serving serves the same bodies for the lists of policies, rules and lists, and for each list. There
// are no libraries.
func serving(policies, rules, lists, list []byte) http.HandlerFunc {
	return servingLibraries(policies, rules, lists, list, []byte(`{"data":[]}`), nil)
}

// servingLibraries also serves the same body for each library.
func servingLibraries(policies, rules, lists, list, libraries, library []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body := list
		switch r.URL.Path {
		case "/v1/policies":
			body = policies
		case "/v1/rules":
			body = rules
		case "/v1/lists":
			body = lists
		case "/v1/libraries":
			body = libraries
		default:
			if strings.HasPrefix(r.URL.Path, "/v1/libraries/") {
				body = library
			}
		}
		_, _ = w.Write(body)
	}
}

// written returns the files below dir, by their names relative to dir.
func written(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			inside, _ := filepath.Rel(dir, name)
			names = append(names, filepath.ToSlash(inside))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

const onePolicy = `{"policy_id":"ID","version":1,"organization_id":"acme","agent_id":"*","allowed_action_types":[],` +
	`"status":"active","updated_at":"2026-11-01T09:00:00Z"}`

// TestDecision_Documents_PullChecksIdsAndNames checks that a pull writes nothing if the server has
// an id or a name that the API would refuse.
func TestDecision_Documents_PullChecksIdsAndNames(t *testing.T) {
	const none, id = `{"data":[]}`, "0c0ffee0-0000-4000-8000-000000000001"
	for name, tc := range map[string]struct{ policies, rules, lists, list, want string }{
		"a policy above": {strings.ReplaceAll(`{"data":[`+onePolicy+`]}`, "ID", "../../../pwn"), `[]`, none, `{}`, "policy_id"},
		"a policy in two cases": {`{"data":[` + strings.ReplaceAll(onePolicy, "ID", id) + "," +
			strings.ReplaceAll(onePolicy, "ID", strings.ToUpper(id)) + `]}`, `[]`, none, `{}`, "policy_id"},
		"a list in two cases": {none, `[]`, `{"data":[{"name":"good"},{"name":"Good"}]}`, `{"name":"good"}`, "to a request for"},
		"a list in capital":   {none, `[]`, `{"data":[{"name":"Good"}]}`, `{"name":"Good"}`, "with the name"},
		"a suite":             {`{"data":[{"suite":"s","tests":[]}]}`, `[]`, none, `{}`, "policy_id"},
		"a policy in capital": {strings.ReplaceAll(`{"data":[`+onePolicy+`]}`, "ID", strings.ToUpper(id)), `[]`, none, `{}`, "policy_id"},
		"null":                {`{"data":[null]}`, `[]`, none, `{}`, "null"},
		"a policy twice":      {strings.ReplaceAll(`{"data":[`+onePolicy+","+onePolicy+`]}`, "ID", id), `[]`, none, `{}`, "twice"},
		"a list above":        {none, `[]`, `{"data":[{"name":"../../../pwn"}]}`, `{"name":"../../../pwn","values":["a"]}`, "with the name"},
		"a list renamed":      {none, `[]`, `{"data":[{"name":"good"}]}`, `{"name":"../../../pwn","values":["a"]}`, "to a request for"},
		"a list twice":        {none, `[]`, `{"data":[{"name":"good"},{"name":"good"}]}`, `{"name":"good"}`, "twice"},
		"a rule":              {none, `[{"id":"../x","name":"n","condition":"{}","action":"{\"decision\":\"deny\"}"}]`, none, `{}`, "a rule with the id"},
	} {
		t.Run(name, func(t *testing.T) {
			server := serving([]byte(tc.policies), []byte(tc.rules), []byte(tc.lists), []byte(tc.list))
			dir, err := pulled(t, server, nil)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("a pull of %s = %v, want an error with %q", name, err, tc.want)
			}
			if names := written(t, dir); len(names) > 0 {
				t.Errorf("a pull of %s wrote %q", name, names)
			}
		})
	}
}

// TestPull_WritesThroughNoLink checks that a pull leaves every file alone that is not a file of its
// directory under the name by which it was read. Git does the same with links.
func TestPull_WritesThroughNoLink(t *testing.T) {
	const id = "0c0ffee0-0000-4000-8000-000000000001"
	policy := strings.ReplaceAll(onePolicy, "ID", id)
	edited := strings.Replace(policy, `"*"`, `"mine"`, 1)
	server := serving([]byte(`{"data":[`+policy+`]}`), []byte(`[]`), []byte(`{"data":[]}`), []byte(`{}`))
	for name, tc := range map[string]struct {
		link func(outside string) error // begins in a directory that has work/ and other/policy.yaml
		want string                     // in the error; empty means that the pull writes
	}{
		"a directory outside": {func(dir string) error {
			return os.Symlink("../other", filepath.Join(dir, "work", "policies"))
		}, "work/policies: nothing is written through a symbolic link"},
		"a directory inside": {func(dir string) error {
			return errors.Join(os.Mkdir(filepath.Join(dir, "work", ".hidden"), 0o755),
				os.Symlink(".hidden", filepath.Join(dir, "work", "policies")))
		}, "work/policies: nothing is written through a symbolic link"},
		"a file outside": {func(dir string) error {
			return os.Symlink("../other/policy.yaml", filepath.Join(dir, "work", "p.yaml"))
		}, "work/p.yaml: nothing is written through a symbolic link"},
		"a file inside": {func(dir string) error {
			return errors.Join(os.WriteFile(filepath.Join(dir, "work", ".policy"), []byte(edited), 0o600),
				os.Symlink(".policy", filepath.Join(dir, "work", "p.yaml")))
		}, "work/p.yaml: nothing is written through a symbolic link"},
		"a hard link": {func(dir string) error {
			return os.Link(filepath.Join(dir, "other", "policy.yaml"), filepath.Join(dir, "work", "p.yaml"))
		}, ""},
		"the directory itself": {func(dir string) error {
			return errors.Join(os.Rename(filepath.Join(dir, "work"), filepath.Join(dir, "linked")),
				os.Symlink("linked", filepath.Join(dir, "work")))
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			before := ""
			dir, err := pulled(t, server, func(outside string) {
				other := filepath.Join(outside, "other")
				if err := errors.Join(os.Mkdir(other, 0o755),
					os.WriteFile(filepath.Join(other, "policy.yaml"), []byte(edited), 0o640), tc.link(outside)); err != nil {
					t.Fatal(err)
				}
				before = contents(t, outside)
			})
			if tc.want != "" {
				if err == nil || !strings.Contains(filepath.ToSlash(err.Error()), tc.want) {
					t.Errorf("a pull = %v, want an error with %q", err, tc.want)
				}
				if after := contents(t, dir); after != before {
					t.Errorf("a pull that is refused leaves\n%s, want\n%s", after, before)
				}
				return
			}
			if err != nil {
				t.Fatalf("a pull = %v, want none", err)
			}
			if other, err := os.ReadFile(filepath.Join(dir, "other", "policy.yaml")); string(other) != edited {
				t.Errorf("a pull left %s, %v in the other file, want %s", other, err, edited)
			}
			if names, err := Files(filepath.Join(dir, "work")); err != nil || len(names) != 1 {
				t.Errorf("a pull wrote %v, %v, want one file", names, err)
			} else if text, err := os.ReadFile(names[0]); err != nil || strings.Contains(string(text), "mine") {
				t.Errorf("a pull wrote %s, %v, want the server's policy", text, err)
			}
		})
	}
}

// TestPull_ReplacesNoFileThatItHasNotRead checks that a pull keeps a file of which it does not know.
// On file systems that do not tell cases apart, Rules.yaml is such a file.
func TestPull_ReplacesNoFileThatItHasNotRead(t *testing.T) {
	dir := t.TempDir()
	w, err := Open(dir, engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "rules.yaml")
	if err := os.WriteFile(name, []byte("# mine\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	rule := `{"id":"0c0ffee0-0000-4000-8000-000000000002","name":"n","condition":"{}","action":"{\"decision\":\"deny\"}"}`
	changed, err := w.rewrite(map[string][]document.Edit{
		filepath.Join(dir, "a.yaml"): {{Index: atEnd, JSON: []byte(rule)}}, name: {{Index: atEnd, JSON: []byte(rule)}},
	}, nil, nil)
	if err == nil || !strings.Contains(err.Error(), "rules.yaml: there is a file of that name") || len(changed) > 0 {
		t.Errorf("rewrite = %q, %v, want an error and no file", changed, err)
	}
	if got := contents(t, dir); got != "rules.yaml: # mine\n\n" {
		t.Errorf("the directory has %q", got)
	}
}

// TestPush_WritesThroughNoLink checks that a push changes nothing on the server if it could not note
// it in the files.
func TestPush_WritesThroughNoLink(t *testing.T) {
	dir := t.TempDir()
	rule := "name: n\ncondition: {}\naction: {decision: deny}\n"
	if err := errors.Join(os.WriteFile(filepath.Join(dir, ".rules"), []byte(rule), 0o600),
		os.Symlink(".rules", filepath.Join(dir, "rules.yaml"))); err != nil {
		t.Fatal(err)
	}
	w, err := Open(dir, engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	plan, err := w.Compare(new(Server))
	if err != nil {
		t.Fatal(err)
	}
	steps, err := plan.Steps(PushOptions{})
	if err != nil || len(steps) != 1 {
		t.Fatalf("Steps = %v, %v, want one", steps, err)
	}
	call := func(context.Context, Request, any) (http.Header, error) {
		t.Error("the push has sent a request")
		return nil, nil
	}
	written, err := plan.Push(t.Context(), call, steps, PushOptions{}, func(Change) {})
	if err == nil || !strings.Contains(err.Error(), "symbolic link") || len(written) > 0 {
		t.Errorf("Push = %q, %v, want an error and no file", written, err)
	}
}

// contents returns the files below dir with their contents, and the links with their targets.
func contents(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	for _, name := range written(t, dir) {
		full := filepath.Join(dir, filepath.FromSlash(name))
		if target, err := os.Readlink(full); err == nil {
			fmt.Fprintf(&b, "%s -> %s\n", name, target)
			continue
		}
		text, err := os.ReadFile(full)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s: %s\n", name, text)
	}
	return b.String()
}

// TestDecision_Documents_TheCLIFollowsNoRedirect checks that the credential and the request do not
// go where a server redirects.
func TestDecision_Documents_TheCLIFollowsNoRedirect(t *testing.T) {
	for _, status := range []int{301, 302, 303, 307, 308} {
		reached := 0
		other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached++ }))
		defer other.Close()
		server := httptest.NewServer(http.RedirectHandler(other.URL+"/v1/rules", status))
		defer server.Close()
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			client := Patient{Client{Base: server.URL, Token: "key"}, func(string, ...any) {}, "in WRIT_API_KEY"}
			_, err := client.Call(context.Background(), Request{Method: method, Path: "/v1/rules", Body: "x"}, nil)
			if err == nil || !strings.Contains(err.Error(), "redirects to") || !strings.Contains(err.Error(), other.URL) {
				t.Errorf("%s with %d = %v, want an error that names the other address", method, status, err)
			}
			if err := client.Do(context.Background(), method, "/v1/rules", nil, nil); err == nil {
				t.Errorf("Do of %s with %d = nil, want an error", method, status)
			}
		}
		if reached > 0 {
			t.Errorf("status %d: %d requests reached the address of the redirect", status, reached)
		}
	}
}

// FuzzHostileServer pulls from a server that answers with any bytes. The pull must write only policies,
// lists and rules below its directory, and must be able to read them again.
func FuzzHostileServer(f *testing.F) {
	policy := strings.ReplaceAll(onePolicy, "ID", "0c0ffee0-0000-4000-8000-000000000001")
	rule := `{"id":"0c0ffee0-0000-4000-8000-000000000002","name":"../x","condition":"{}","action":"{\"decision\":\"deny\"}","isActive":true}`
	list := `{"name":"payees","values":["a"],"version":1,"created_at":"2026-11-01T09:00:00Z","updated_at":"2026-11-01T09:00:00Z"}`
	for _, seed := range [][4]string{
		{`{"data":[` + policy + `]}`, `[` + rule + `]`, `{"data":[{"name":"payees"}]}`, list},
		{`{"data":[` + strings.ReplaceAll(onePolicy, "ID", "../../../pwn") + `]}`, `[]`, `{"data":[]}`, `{}`},
		{`{"data":[]}`, `[]`, `{"data":[{"name":"payees"}]}`, strings.ReplaceAll(list, "payees", "../../../pwn")},
		{`{"data":[]}`, `[]`, `{"data":[{"name":"..\\..\\pwn"}]}`, strings.ReplaceAll(list, "payees", `..\\..\\pwn`)},
		{`{"data":[]}`, `[` + strings.ReplaceAll(rule, "../x", `a\n---\nname: b # \u001b[2J`) + `]`, `{"data":[]}`, `{}`},
		{`{"data":[` + strings.ReplaceAll(policy, `"*"`, `"*\n---\nstatus: active"`) + `]}`, `[]`, `{"data":[]}`, `{}`},
		{`{"data":[` + policy + "," + strings.ReplaceAll(onePolicy, "ID", "0C0FFEE0-0000-4000-8000-000000000001") + `]}`, `[]`, `{"data":[]}`, `{}`},
		{`{"data":[]}`, `[]`, `{"data":[{"name":"Payees"}]}`, strings.ReplaceAll(list, "payees", "Payees")},
		{`{"data":[{"suite":"s","policy":` + policy + `,"tests":[]}]}`, `[{"suite":"s","tests":[]}]`, `{"data":[]}`, `{}`},
	} {
		f.Add([]byte(seed[0]), []byte(seed[1]), []byte(seed[2]), []byte(seed[3]), []byte(`{"data":[]}`), []byte(`{}`))
	}
	for _, library := range []string{
		oneLibrary("net", "net.rego"), oneLibrary("net", "../../../pwn.rego"), oneLibrary("../../pwn", "net.rego"),
		oneLibrary("net", ".pulled"), oneLibrary("net", "Net.rego"), oneLibrary("net", "net_test.rego"),
	} {
		none := []byte(`{"data":[]}`)
		f.Add(none, []byte(`[]`), none, []byte(`{}`), []byte(`{"data":[`+library+`]}`), []byte(library))
	}
	f.Fuzz(func(t *testing.T, policies, rules, lists, list, libraries, library []byte) {
		dir, _ := pulled(t, servingLibraries(policies, rules, lists, list, libraries, library), func(outside string) {
			if err := os.WriteFile(filepath.Join(outside, "pwn.yaml"), []byte("mine"), 0o600); err != nil {
				t.Fatal(err)
			}
		})
		if now, err := os.ReadFile(filepath.Join(dir, "pwn.yaml")); err != nil || string(now) != "mine" {
			t.Fatalf("the pull changed a file outside its directory: %q, %v", now, err)
		}
		names := make(map[string]string) // by the name in lower case
		for _, name := range written(t, dir) {
			ok := name == "pwn.yaml" || name == "work/rules.yaml"
			for _, pattern := range []string{"work/policies/*.yaml", "work/lists/*.yaml", "work/lib/*/*.rego", "work/lib/*/.pulled"} {
				fits, _ := filepath.Match(pattern, name)
				ok = ok || fits
			}
			if !ok {
				t.Fatalf("the pull wrote %q", name)
			}
			if name == "pwn.yaml" {
				continue
			}
			if other := names[strings.ToLower(name)]; other != "" {
				t.Fatalf("the pull wrote %q and %q, which are one file on many systems", other, name)
			}
			names[strings.ToLower(name)] = name
			if strings.HasPrefix(name, "work/lib/") {
				continue // read again below
			}
			data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
			if err != nil {
				t.Fatal(err)
			}
			docs, err := document.Parse(name, data)
			if err != nil || name != "work/rules.yaml" && len(docs) != 1 {
				t.Fatalf("the pull wrote %q, which has %d documents, %v:\n%s", name, len(docs), err, data)
			}
		}
		_, err := document.Libraries(filepath.Join(dir, "work", "lib"))
		if err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, document.ErrNoLibrary) {
			t.Fatalf("the pull wrote libraries that cannot be read: %v", err)
		}
	})
}

// oneLibrary returns a library with one module.
func oneLibrary(name, file string) string {
	return fmt.Sprintf(`{"name":%q,"modules":{%q:"package lib.net\n"},"version":1,`+
		`"created_at":"2026-11-01T09:00:00Z","updated_at":"2026-11-01T09:00:00Z"}`, name, file)
}

// TestDecision_Libraries_PullChecksNames checks that a pull writes nothing if the server has a library
// or a module with a name that the API would refuse.
func TestDecision_Libraries_PullChecksNames(t *testing.T) {
	none := []byte(`{"data":[]}`)
	for name, tc := range map[string]struct{ list, library, want string }{
		"a library above":   {oneLibrary("../../pwn", "net.rego"), oneLibrary("../../pwn", "net.rego"), "with the name"},
		"a library renamed": {oneLibrary("net", "net.rego"), oneLibrary("other", "net.rego"), "to a request for"},
		"a library twice": {
			oneLibrary("net", "net.rego") + "," + oneLibrary("net", "net.rego"), oneLibrary("net", "net.rego"), "twice",
		},
		"a module above":      {oneLibrary("net", "x.rego"), oneLibrary("net", "../../pwn.rego"), "with the name"},
		"the record":          {oneLibrary("net", "x.rego"), oneLibrary("net", ".pulled"), "with the name"},
		"a module in capital": {oneLibrary("net", "x.rego"), oneLibrary("net", "Net.rego"), "with the name"},
		"no module":           {oneLibrary("net", "x.rego"), `{"name":"net"}`, "with the name"},
	} {
		t.Run(name, func(t *testing.T) {
			server := servingLibraries(none, []byte(`[]`), none, []byte(`{}`), []byte(`{"data":[`+tc.list+`]}`), []byte(tc.library))
			dir, err := pulled(t, server, nil)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("a pull of %s = %v, want an error with %q", name, err, tc.want)
			}
			if names := written(t, dir); len(names) > 0 {
				t.Errorf("a pull of %s wrote %q", name, names)
			}
		})
	}
}

// TestPull_WritesLibrariesThroughNoLink checks that a pull of a library changes nothing outside of the
// directory, whatever lib and the library's directory are.
func TestPull_WritesLibrariesThroughNoLink(t *testing.T) {
	none := []byte(`{"data":[]}`)
	library := oneLibrary("net", "net.rego")
	server := servingLibraries(none, []byte(`[]`), none, []byte(`{}`), []byte(`{"data":[`+library+`]}`), []byte(library))
	for _, link := range []string{"lib", "lib/net", "lib/net/net.rego", "lib/net/.pulled"} {
		t.Run(link, func(t *testing.T) {
			dir, err := pulled(t, server, func(outside string) {
				from := filepath.Join(outside, "work", filepath.FromSlash(link))
				if err := errors.Join(os.Mkdir(filepath.Join(outside, "other"), 0o755),
					os.MkdirAll(filepath.Dir(from), 0o755), os.Symlink(filepath.Join(outside, "other"), from)); err != nil {
					t.Fatal(err)
				}
			})
			if err == nil || !strings.Contains(err.Error(), "symbolic link") {
				t.Errorf("a pull = %v, want an error about a symbolic link", err)
			}
			if names := written(t, filepath.Join(dir, "other")); len(names) > 0 {
				t.Errorf("a pull wrote %q outside of its directory", names)
			}
		})
	}
}
