package api

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/tools/txtar"

	"writ.example/writ/authoring/document"
	"writ.example/writ/engine"
	"writ.example/writ/rego"
	"writ.example/writ/storage"
	"writ.example/writ/storage/ledger"
	"writ.example/writ/storage/receipt"
	"writ.example/writ/storage/transfer"
)

// importing returns the result of transfer.Check for a file that contains docs.
func importing(unreadable bool, docs ...storage.Document) (transfer.Checked, error) {
	keys, err := receipt.NewKeys(receipt.NewSigner(ed25519.NewKeyFromSeed(make([]byte, 32))).Public())
	if err != nil {
		return transfer.Checked{}, err
	}
	var file bytes.Buffer
	write := func(member string, v any) {
		line, err := json.Marshal(map[string]any{member: v}, json.Deterministic(true))
		if err != nil {
			panic(err)
		}
		file.Write(append(line, '\n'))
	}
	write("header", transfer.Header{Format: "writ-export/2", ID: someExport, OrganizationID: acme,
		Keys: jsontext.Value(keys.JWKS())})
	for _, d := range docs {
		// The value may be invalid JSON, so this line is not encoded by a JSON encoder.
		fmt.Fprintf(&file, `{"document":{"kind":%q,"id":%q,"value":%s}}`+"\n", storage.CollectionOf(d.Kind).Name,
			base64.RawURLEncoding.EncodeToString([]byte(d.ID)), bytes.ReplaceAll(d.Value, []byte("\n"), []byte(" ")))
	}
	write("footer", transfer.Footer{Documents: int64(len(docs)), Root: new(ledger.ImportTree).Root(),
		Digest: fmt.Sprintf("sha256:%x", sha256.Sum256(file.Bytes()))})
	return transfer.Check(context.Background(), &file, int64(file.Len()), transfer.CheckConfig{
		Validate:   (&Imported{Scrub: scrubber(), Conditions: engine.Options{CompileRego: rego.CompileCondition, CompileLibraries: rego.CompileLibraries}}).Validate,
		Unreadable: unreadable, Plans: []string{"free"},
	})
}

const (
	someExport = "01a1fe16-0000-7000-8000-000000000001"
	someUUID   = "0c0ffee0-0000-4000-8000-000000000001"
	someKey    = "01tRy6czI6jAOLpZvq3hw1"
)

// storedForm returns the stored form of the document in a request. It adds only the members that
// the server adds. It returns false if the request stores no document.
func storedForm(method, path string, body []byte) (d storage.Document, ok bool) {
	d.Org = acme
	with := func(members string) {
		rest := bytes.TrimPrefix(bytes.TrimSpace(body), []byte("{"))
		if string(bytes.TrimSpace(rest)) != "}" {
			members += ","
		}
		d.Value = slices.Concat([]byte("{"+members), rest)
	}
	const created, updated = `"createdAt":"2026-11-01T09:00:00Z",`, `"updatedAt":"2026-11-01T09:00:00Z"`
	switch list, isList := strings.CutPrefix(path, listsPath); {
	case method == http.MethodPost && path == "/v1/policies/register":
		var in struct {
			Policy jsontext.Value `json:"policy"`
		}
		if json.Unmarshal(body, &in, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) != nil || in.Policy == nil {
			return d, false
		}
		var named struct {
			PolicyID string `json:"policy_id"`
			Version  int64  `json:"version"`
		}
		_ = json.Unmarshal(in.Policy, &named, jsontext.AllowDuplicateNames(true)) // a value of a wrong type stays zero
		d.Kind, d.ID, d.Value = storage.PolicyKind, storage.VersionID(named.PolicyID, named.Version), in.Policy
	case method == http.MethodPost && path == "/v1/rules":
		d.Kind, d.ID = storage.RuleKind, someUUID
		members := `"id":"` + someUUID + `","isActive":true,` + created + updated
		if !bytes.Contains(body, []byte(`"priority"`)) {
			members += `,"priority":100`
		}
		with(members)
	case method == http.MethodPatch && strings.HasPrefix(path, "/v1/rules/"):
		d.Kind, d.ID = storage.RuleKind, someUUID
		members := `"id":"` + someUUID + `",` + created + updated
		for name, value := range map[string]string{"name": `"n"`, "condition": `"{}"`, "action": `"{\"decision\":\"deny\"}"`,
			"priority": "100", "isActive": "true"} {
			if !bytes.Contains(body, []byte(`"`+name+`"`)) {
				members += `,"` + name + `":` + value
			}
		}
		with(members)
	case method == http.MethodPatch && strings.HasPrefix(path, "/v1/agents/"):
		d.Kind, d.ID = storage.AgentKind, someUUID
		with(`"id":"` + someUUID + `","name":"n",` + created + updated)
	case method == http.MethodPut && isList:
		d.Kind, d.ID = storage.ListKind, list
		name, _ := json.Marshal(list)
		with(`"name":` + string(name) + `,"version":1,"created_at":"2026-11-01T09:00:00Z","updated_at":"2026-11-01T09:00:00Z"`)
	case method == http.MethodPost && path == "/v1/agents":
		d.Kind, d.ID = storage.AgentKind, someUUID
		with(`"id":"` + someUUID + `","status":"active",` + created + updated)
	case method == http.MethodPost && path == "/v1/tokens":
		d.Kind, d.ID = storage.TokenKind, someKey
		body = bytes.ReplaceAll(body, []byte(`"expiresAt"`), []byte(`"expires_at"`))
		with(`"id":"` + someKey + `","organization_id":"acme","hash":"` + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{1}, 32)) +
			`","hint":"abcd","created_at":"2026-11-01T09:00:00Z"`)
	default:
		return d, false
	}
	return d, jsontext.Value(body).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// byOthers are parts of error messages for documents that are valid by themselves. They were
// refused because of stored documents, the time or the request.
var byOthers = []string{
	"is the id of another agent", "is stored with a different content", "must be greater than", "take the lists of the organization over",
	"takes the active rules of the organization over", "must be in the future", "must not be after", "must be before the year 10000",
	"the policy of the key that makes it", "the organization of your credential", "is not a query parameter of this endpoint",
}

// importRefusesToo checks that an import refuses each document that an endpoint refuses as invalid.
// The harness calls this for each request of the tests.
func (h *harness) importRefusesToo(req *http.Request, sent []byte, r *reply) {
	h.t.Helper()
	if r.status != http.StatusBadRequest {
		return
	}
	d, ok := storedForm(req.Method, req.URL.Path, sent)
	if !ok {
		return
	}
	var p problem
	if err := json.Unmarshal(r.body, &p); err != nil || len(p.Errors) == 0 {
		return
	}
	for _, e := range p.Errors {
		other := d.Kind == storage.PolicyKind && !strings.HasPrefix(e.Field, "policy") // a member beside the policy
		if other || slices.ContainsFunc(byOthers, func(text string) bool { return strings.Contains(e.Message, text) }) {
			return
		}
	}
	if _, err := importing(false, d); err == nil {
		h.t.Errorf("%s refuses %.500s, with %s\nimport takes it as %.500s", r.what, sent, r.body, d.Value)
	} else if line := (*transfer.LineError)(nil); !errors.As(err, &line) || line.Line != 2 {
		h.t.Errorf("import refuses %.500s with %v, want an error of line 2", d.Value, err)
	}
}

// TestDecision_Documents_ImportRefusesWhatTheAPIRefuses sends each invalid document of package
// document's tests to its endpoint and into an import. The import must refuse every document that
// the endpoint refuses. The harness makes the same check for each document that this package's
// tests send.
func TestDecision_Documents_ImportRefusesWhatTheAPIRefuses(t *testing.T) {
	files, err := filepath.Glob("../authoring/document/testdata/broken/*.txtar")
	must(t, err)
	h := start(t)
	compared := make(map[document.Kind]int)
	for _, name := range files {
		archive, err := txtar.ParseFile(name)
		must(t, err)
		f := archive.Files[0]
		docs, err := document.Parse(f.Name, f.Data)
		if err != nil {
			docs = nil // no client could send this document
		}
		for _, doc := range docs {
			kinds := []document.Kind{doc.Kind}
			if doc.Kind == "" {
				kinds = []document.Kind{document.Policy, document.Rule, document.List}
			}
			for _, kind := range kinds {
				method, path, body := endpointOf(kind, doc.JSON())
				if path == "" {
					continue
				}
				r := h.do(method, path, h.operator(acme), body) // send also compares a 400 with an import
				d, ok := storedForm(method, path, body)
				if !ok {
					continue
				}
				compared[kind]++
				// A 403 means that the plan's limit is reached.
				if _, err := importing(false, d); r.status/100 != 2 && r.status != http.StatusForbidden && err == nil {
					t.Errorf("%s: %s answers %d, and import takes it:\n%s", name, path, r.status, d.Value)
				}
			}
		}
	}
	for kind, least := range map[document.Kind]int{document.Policy: 20, document.Rule: 60, document.List: 5} {
		if compared[kind] < least {
			t.Errorf("%d broken documents of kind %s are compared, want at least %d", compared[kind], kind, least)
		}
	}
}

// endpointOf returns the request that stores a document. It leaves out members that the server
// adds.
func endpointOf(kind document.Kind, value jsontext.Value) (method, path string, body []byte) {
	var members map[string]jsontext.Value
	if json.Unmarshal(value, &members) != nil {
		return "", "", nil
	}
	without := func(names ...string) []byte {
		for _, name := range names {
			delete(members, name)
		}
		out, _ := json.Marshal(members, json.Deterministic(true))
		return out
	}
	switch kind {
	case document.Policy:
		value = jsontext.Value(strings.Replace(string(value), `"organization_id":"demo"`, `"organization_id":"acme"`, 1))
		return http.MethodPost, "/v1/policies/register", slices.Concat([]byte(`{"policy":`), value, []byte(`}`))
	case document.Rule:
		return http.MethodPost, "/v1/rules", without("id", "createdAt", "updatedAt", "isActive")
	case document.List:
		var name string
		_ = json.Unmarshal(members["name"], &name) // a missing name makes the path invalid
		return http.MethodPut, listsPath + name, without("name", "version", "created_at", "updated_at")
	}
	return "", "", nil
}

// TestDecision_Documents_UnreadableOnesAreImportedOnDemand checks stored policies and rules that no
// longer compile. An import refuses such a document and names its line. With --unreadable it
// imports the document unchanged. Unknown members, invalid ids and other kinds of document are
// refused even then.
func TestDecision_Documents_UnreadableOnesAreImportedOnDemand(t *testing.T) {
	policy := func(changed string) storage.Document {
		return storage.Document{Kind: storage.PolicyKind, Org: acme, ID: storage.VersionID(someUUID, 1), Value: []byte(
			`{"policy_id":"` + someUUID + `","version":1,"organization_id":"acme","agent_id":"*","allowed_action_types":["deploy"],` +
				`"status":"active","updated_at":"2026-11-01T09:00:00Z"` + changed + `}`)}
	}
	rule := func(condition, changed string) storage.Document {
		return storage.Document{Kind: storage.RuleKind, Org: acme, ID: someUUID, Value: fmt.Appendf(nil,
			`{"id":%q,"name":"n","condition":%q,"action":"{\"decision\":\"deny\"}","priority":1%s,`+
				`"createdAt":"2026-11-01T09:00:00Z","updatedAt":"2026-11-01T09:00:00Z"}`, someUUID, condition, changed)}
	}
	for name, tc := range map[string]struct {
		doc  storage.Document
		want string // the error without --unreadable
		lost bool   // whether it is refused with --unreadable too
	}{
		"a good policy":              {policy(``), "", false},
		"a pattern":                  {policy(`,"blocked_resource_patterns":["prod/["]`), "policy.blocked_resource_patterns[0]", false},
		"a misspelt member":          {policy(`,"denied_actions":["deploy"]`), "policy.denied_actions", true},
		"a member in capital":        {policy(`,"Denied_action_types":["deploy"]`), "policy.Denied_action_types", true},
		"a member twice":             {policy(`,"status":"active"`), "status", true},
		"a null":                     {policy(`,"max_cost_minor":null`), "policy.max_cost_minor", true},
		"a good rule":                {rule(`{}`, `,"isActive":true`), "", false},
		"a condition":                {rule(`{"action_typ":"x"}`, `,"isActive":true`), "condition", false},
		"a rule of unknown activity": {rule(`{}`, ``), "rule.isActive: is required", true},
		"a member of a rule":         {rule(`{}`, `,"isActive":true,"enabled":true`), "rule.enabled", true},
		"a missing list":             {rule(`{"metadata.to":{"$in":{"list":"x"}}}`, `,"isActive":true`), `the list "x"`, true},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := importing(false, tc.doc)
			if tc.want == "" != (err == nil) || err != nil && (!strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "line 2: ")) {
				t.Errorf("import of %s = %v, want %q", name, err, tc.want)
			}
			checked, err := importing(true, tc.doc)
			if tc.lost != (err != nil) {
				t.Errorf("import --unreadable of %s = %v, want an error: %v", name, err, tc.lost)
			}
			if named := len(checked.Unreadable) == 1; err == nil && named != (tc.want != "") {
				t.Errorf("import --unreadable of %s names %v", name, checked.Unreadable)
			}
		})
	}
}

// TestImported_TakesWhatAnExportHas checks that an import accepts the exported documents of this
// package's store.
func TestImported_TakesWhatAnExportHas(t *testing.T) {
	h := start(t)
	h.register(acme, obj{"blocked_resource_patterns": []string{"prod/**"}, "max_cost_minor": 5})
	h.do("PUT", "/v1/lists/payees", h.operator(acme), obj{"values": []string{"b", "a"}}).wantStatus(http.StatusCreated)
	h.do("POST", "/v1/rules", h.operator(acme), obj{"name": "n", "condition": `{"metadata.to":{"$in":{"list":"payees"}}}`, "action": `{"decision":"deny"}`}).wantStatus(http.StatusCreated)
	h.do("POST", "/v1/agents", h.operator(acme), obj{"name": "bot", "externalId": "bot-7"}).wantStatus(http.StatusCreated)
	h.do("POST", "/v1/agents", h.operator(acme), obj{"name": "nameless"}).wantStatus(http.StatusCreated)
	first, _ := h.key(acme, "policy:evaluate", "tokens:write")
	h.do("POST", "/v1/tokens", first, obj{"name": "second", "scopes": []string{"policy:evaluate"}, "expiresAt": "2027-01-01T00:00:00Z"}).wantStatus(http.StatusCreated)
	var docs []storage.Document
	must(t, h.store.View(t.Context(), func(r storage.Reader) error {
		for _, kind := range []storage.Kind{storage.AgentKind, storage.ListKind, storage.RuleKind, storage.PolicyKind} {
			err := r.Scan(storage.Query{Kind: kind, Org: acme}, func(_ []byte, d storage.Document) (bool, error) {
				d.Value = bytes.Clone(d.Value)
				docs = append(docs, d)
				return true, nil
			})
			if err != nil {
				return err
			}
		}
		return r.Scan(storage.Query{Kind: storage.TokenKind, Org: acme, Index: storage.ByOwnName}, func(_ []byte, d storage.Document) (bool, error) {
			d.Value = bytes.Clone(d.Value)
			docs = append(docs, d)
			return true, nil
		})
	}))
	if _, err := importing(false, docs...); err != nil || len(docs) != 7 {
		t.Errorf("import of %d documents = %v, want 7 and no error", len(docs), err)
	}
}

// TestImported_Revisions checks that an import reads the document of a revision as strictly as a current
// one, but takes one that does not compile: it decides nothing.
func TestImported_Revisions(t *testing.T) {
	of := func(kind storage.Kind, id, value string) storage.Document {
		v := &storage.Revision{Origin: someExport, Of: string(rune(kind)), ID: id, Since: 1, ReplacedAt: time.Unix(1, 0).UTC(), Value: jsontext.Value(value)}
		d, err := storage.Revisions.Encode(v)
		must(t, err)
		return storage.Document{Kind: storage.RevisionKind, ID: v.DocumentID(), Value: d}
	}
	origin := storage.Document{Kind: storage.OriginKind, ID: someExport, Value: []byte(`{"id":"` + someExport + `","chains":[]}`)}
	rule := func(members string) storage.Document {
		return of(storage.RuleKind, someUUID, `{"id":"`+someUUID+`","name":"n","action":"{\"decision\":\"deny\"}","priority":1,"isActive":true,`+
			`"createdAt":"2026-11-01T09:00:00Z","updatedAt":"2026-11-01T09:00:00Z",`+members+`}`)
	}
	named := func(kind storage.Kind, members string) storage.Document {
		return of(kind, "x", `{"name":"x","version":1,"created_at":"2026-11-01T09:00:00Z","updated_at":"2026-11-01T09:00:00Z",`+members+`}`)
	}
	for name, test := range map[string]struct {
		d    storage.Document
		want string
	}{
		"a rule":                       {rule(`"condition":"{}"`), ""},
		"a rule that does not compile": {rule(`"condition":"{\"cel\":\"(\"}"`), ""},
		"a rule's library":             {rule(`"condition":"{\"rego\":\"package p\\nimport data.lib.gone\\nmatch if gone.f(1)\"}"`), ""},
		"a list":                       {named(storage.ListKind, `"values":["a"]`), ""},
		"a library":                    {named(storage.LibraryKind, `"modules":{"a.rego":"package lib.x"}`), ""},
		"a rule's unknown member":      {rule(`"condition":"{}","prioritty":1`), "prioritty"},
		"a rule's missing priority":    {of(storage.RuleKind, someUUID, `{"id":"`+someUUID+`"}`), "rule.priority: is required"},
		"a list's unknown member":      {named(storage.ListKind, `"value":["a"]`), "value"},
		"a library's unknown member":   {named(storage.LibraryKind, `"module":{}`), "module"},
		"a library without modules":    {named(storage.LibraryKind, `"modules":{}`), "modules"},
		"a list's version":             {of(storage.ListKind, "x", `{"name":"x","version":0}`), "list.version"},
		"a secret":                     {rule(`"condition":"{\"resource\":\"ghp_` + strings.Repeat("A1b2C3", 6) + `\"}"`), "looks like a secret"},
		"a policy":                     {of(storage.PolicyKind, "x", `{}`), "want r, l or b"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := importing(false, origin, test.d)
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("Check = %v, want %q", err, test.want)
			}
		})
	}
}
