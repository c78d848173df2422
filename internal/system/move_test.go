package system

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"writ.example/writ/engine"
	"writ.example/writ/examples"
	"writ.example/writ/storage"
	"writ.example/writ/storage/datadir"
	"writ.example/writ/storage/embedded"
	"writ.example/writ/storage/ledger"
	"writ.example/writ/storage/ledger/ledgertest"
	"writ.example/writ/storage/mongodb/mongotest"
	"writ.example/writ/storage/receipt"
)

// moved is a deployment that is the source or the target of a move.
type moved struct {
	data  datadir.Dir
	token string
	flags []string // flags that select the store
}

func newMoved(t *testing.T, flags ...string) moved {
	t.Helper()
	data, token := newData(t)
	return moved{data: data, token: token, flags: flags}
}

func inMongoDB(t *testing.T, set *mongotest.Set, name string) moved {
	t.Helper()
	return newMoved(t, "--store=mongodb", "--mongodb-uri", set.URI(), "--mongodb-database", name)
}

func (m moved) run(t *testing.T, code int, args ...string) string {
	t.Helper()
	return wantCode(t, code, append(append(args, "--data", string(m.data)), m.flags...)...)
}

// wantWhole checks that the whole history of m verifies.
func (m moved) wantWhole(t *testing.T, want ...string) {
	t.Helper()
	said := m.run(t, exitOK, "verify", "--chain", "--keys", m.data.JWKS())
	for _, part := range append(want, ": whole: ") {
		if !strings.Contains(said, part) {
			t.Errorf("writ verify --chain says %s\nwant %q", said, part)
		}
	}
}

// TestMove moves an organization between stores with the real binary. Then the organization is
// used in its new place.
func TestMove(t *testing.T) {
	t.Parallel()
	t.Run("embedded to embedded", func(t *testing.T) { move(t, newMoved(t), newMoved(t)) })
	if testing.Short() {
		t.Skip("SKIPPED in short mode: starts a replica set")
	}
	set := mongotest.For(t, 1)
	t.Run("embedded to MongoDB", func(t *testing.T) { move(t, newMoved(t), inMongoDB(t, set, "to")) })
	t.Run("MongoDB to embedded", func(t *testing.T) { move(t, inMongoDB(t, set, "from"), newMoved(t)) })
}

func move(t *testing.T, from, to moved) {
	p := start(t, from.data, from.flags...)
	register(t, p.url, from.token)
	source := newClient(t, p.url, from.token)
	answers := make(map[string]answer)
	var intents []intent
	var rules []string
	for i := range 20 {
		switch i % 5 {
		case 0:
			var rule engine.Rule
			source.do(t, http.MethodPost, "/v1/rules", object{"name": fmt.Sprint("rule ", i), "condition": `{"action_type":"delete"}`,
				"action": fmt.Sprintf(`{"decision":%q}`, []string{"deny", "allow"}[i/5%2])}, http.StatusCreated, &rule)
			rules = append(rules, "/v1/rules/"+rule.ID)
		case 3:
			source.do(t, http.MethodPatch, rules[len(rules)-1], object{"priority": i}, http.StatusOK, nil)
		case 4:
			source.do(t, http.MethodDelete, rules[i%len(rules)], nil, http.StatusNoContent, nil)
			rules = slices.Delete(rules, i%len(rules), i%len(rules)+1)
		}
		intents = append(intents, newIntent([]string{"bot", "another"}[i%2], []string{"deploy", "delete"}[i%4/2], "k8s/staging"))
		a := source.decide(t, p.url, intents[i])
		answers[intents[i].id] = a
	}
	decision := func(in intent) string {
		res, err := receipt.ParseResult([]byte(answers[in.id].body))
		must(t, err)
		return res.Receipt.DecisionID
	}
	settle := func(c client, in intent) {
		t.Helper()
		c.do(t, http.MethodPost, "/v1/actions/record", fmt.Sprintf(`{"decision_id": %q, "outcome": "executed"}`, decision(in)), http.StatusOK, nil)
	}
	settle(source, intents[0])
	explained := make(map[string]string)
	explain := func(c client, in intent) (body string) {
		t.Helper()
		var row struct {
			Explanation jsontext.Value `json:"explanation"`
		}
		c.do(t, http.MethodGet, "/v1/authorizations/"+decision(in)+"?explain=true", nil, http.StatusOK, &row)
		return string(row.Explanation)
	}
	byRules := 0
	for _, in := range intents {
		if explained[in.id] = explain(source, in); strings.Contains(explained[in.id], `"rules":[{`) {
			byRules++
		}
	}
	if byRules < 10 {
		t.Errorf("%d explanations have rules, want 10 or more", byRules)
	}
	p.stop(t)

	file := filepath.Join(t.TempDir(), "org.ndjson")
	exported := from.run(t, exitOK, "export", "--org", examples.Organization, "-o", file)
	imported := to.run(t, exitOK, "import", file, "--keys", from.data.JWKS())
	if !strings.Contains(exported, "20 rows, 1 settled, 0 removed rows") || !strings.Contains(imported, "20 rows, 1 settled, 0 removed rows") {
		t.Errorf("writ export says %s\nand writ import %s\nwant 20 rows", exported, imported)
	}
	to.wantWhole(t, "20 rows that 1 organization imported, with 1 settlement")

	p = start(t, to.data, to.flags...)
	target := newClient(t, p.url, to.token)
	for _, in := range intents {
		got, err := target.evaluate(p.url, in)
		if err != nil || got.body != answers[in.id].body || got.replayed != "true" {
			t.Fatalf("the same intent at the target = %+v, %v, want what the source has answered: %s", got, err, answers[in.id].body)
		}
	}
	_, jwks := get(t, p.url+"/.well-known/jwks.json")
	keys, err := receipt.ParseKeys([]byte(jwks))
	must(t, err)
	rows := history(t, p.url, to.token)
	if len(rows) != len(intents) {
		t.Errorf("the target lists %d rows, want %d", len(rows), len(intents))
	}
	for _, r := range rows {
		if err := errors.Join(receipt.Verify(r.Receipt, keys, r.DecidedAt), ledger.VerifyRow(r), ledger.VerifySettlement(r, keys)); err != nil {
			t.Errorf("a row at the target does not verify with the target's keys: %v", err)
		}
	}
	for _, in := range intents {
		if got, want := explain(target, in), explained[in.id]; got != want {
			t.Errorf("decision %s is explained at the target as\n%s\nwant as at the source\n%s", decision(in), got, want)
		}
	}
	settle(target, intents[0]) // a repeat of the settlement
	settle(target, intents[1])
	if got, err := target.evaluate(p.url, newIntent("bot", "deploy", "k8s/staging")); err != nil || !strings.Contains(got.body, `"decision":"allow"`) {
		t.Errorf("a new intent at the target = %+v, %v, want an allow by the policy that came along", got, err)
	}
	p.stop(t)
	if log := p.stderr.String(); strings.Contains(log, "not finished") {
		t.Errorf("writ serve says %s, want nothing of an unfinished import", log)
	}
	to.wantWhole(t, "21 decisions, 2 settled", "20 rows that 1 organization imported, with 1 settlement")
}

// manyRows fills a new data directory with rows of an organization.
func manyRows(t *testing.T, n int) moved {
	t.Helper()
	const batch = 250
	m := newMoved(t)
	_, l, closeBoth := openLedger(t, m.data, nil)
	for range n / batch {
		entries := make([]*ledger.Entry, batch)
		for i := range entries {
			entries[i] = allowed(uuid.NewString())
		}
		outs, err := ledgertest.Commit(t.Context(), l, examples.Organization, entries...)
		if err == nil {
			_, _, err = l.Settle(t.Context(), examples.Organization, outs[0].Record.DecisionID, storage.Settlement{Outcome: storage.Executed, RecordedAt: time.Now()})
		}
		must(t, err)
	}
	closeBoth()
	return m
}

// killed starts writ and kills it once the callback returns true. It returns early if writ has
// ended by itself.
func killed(t *testing.T, when func() bool, args ...string) {
	t.Helper()
	cmd := command(t, args...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	must(t, cmd.Start())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = cmd.Wait() // the exit status is in ProcessState
	}()
	late := time.After(patience)
	for ended := false; !ended && !when(); {
		select {
		case <-done:
			ended = true
		case <-late:
			t.Fatalf("writ %s has not come far enough after %v", args[0], patience)
		case <-time.After(time.Millisecond):
		}
	}
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
	<-done
}

// TestMove_Killed kills exports and imports with kill -9 many times, and then runs each command
// without a kill. The result must equal the result of a run without kills.
func TestMove_Killed(t *testing.T) {
	t.Parallel()
	const n = 20_000
	from := manyRows(t, n)
	dir := t.TempDir()
	whole, file := filepath.Join(dir, "whole.ndjson"), filepath.Join(dir, "killed.ndjson")
	from.run(t, exitOK, "export", "--org", examples.Organization, "-o", whole)
	args := []string{"export", "--org", examples.Organization, "--data", string(from.data), "-o", file}
	for kills, size := 0, int64(0); kills < 3; kills++ {
		killed(t, func() bool {
			info, err := os.Stat(file)
			return err == nil && info.Size() > size+1<<20
		}, args...)
		if info, err := os.Stat(file); err == nil {
			size = info.Size()
		}
		if kills == 0 {
			wantCode(t, exitInvalid, "import", file, "--keys", from.data.JWKS(), "--data", filepath.Join(dir, "none"))
			if _, err := os.Stat(filepath.Join(dir, "none")); err == nil {
				t.Error("an import of half a file has made a data directory")
			}
			wantCode(t, exitFailed, args...) // the output file exists already
			args = append(args, "--resume")
		}
	}
	wantCode(t, exitOK, args...)
	if a, b := afterHeader(t, whole), afterHeader(t, file); a != b {
		t.Error("an export that was killed and gone on with is not the one that was not")
	}

	to := newMoved(t)
	args = []string{"import", file, "--keys", from.data.JWKS(), "--data", string(to.data)}
	unfinished := 0
	kills := rounds(3, 6)
	for kill := range kills {
		started, opened := time.Now(), time.Time{}
		killed(t, func() bool {
			// Opening the store creates files in its directory. The keys are written once a new store is made.
			info, err := os.Stat(to.data.Store())
			_, keysErr := os.Stat(to.data.JWKS())
			if err == nil && keysErr == nil && opened.IsZero() && info.ModTime().After(started) {
				opened = time.Now()
			}
			return !opened.IsZero() && time.Since(opened) > time.Duration(kill+1)*100*time.Millisecond
		}, args...)
		said := to.run(t, exitOK, "verify", "--chain", "--keys", to.data.JWKS())
		if strings.Contains(said, "its import is not finished") {
			unfinished++
		}
	}
	t.Logf("%d of %d kills left an import that is not finished", unfinished, kills)
	if unfinished == 0 {
		t.Error("no kill has met an import in its middle")
	}
	said := wantCode(t, exitOK, args...)
	if again := wantCode(t, exitOK, args...); again != said {
		t.Errorf("writ import of what is imported says %s\nwant %s", again, said)
	}
	to.wantWhole(t, fmt.Sprintf("%d rows that 1 organization imported, with %d settlements", n, n/250))
}

// afterHeader returns a file without its first line and without the digest in its last line.
func afterHeader(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	must(t, err)
	_, rest, _ := strings.Cut(string(data), "\n")
	rest, _, _ = strings.Cut(rest, `,"digest":`)
	return rest
}

// TestMove_Unfinished checks an incomplete import. Until the import is abandoned, serve and verify
// --chain must name its organization.
func TestMove_Unfinished(t *testing.T) {
	m := newMoved(t)
	store, err := embedded.Open(m.data.Store(), embedded.Options{})
	must(t, err)
	_, err = store.Update(t.Context(), "acme", func(tx storage.Tx) error {
		return storage.Imports.Put(tx, "acme", &storage.Import{ID: uuid.NewString(), BeganAt: time.Now()})
	})
	must(t, errors.Join(err, store.Close()))
	p := start(t, m.data)
	waitFor(t, "a line about the import", func() bool {
		return strings.Contains(p.stderr.String(), `level=ERROR msg="the import of an organization is not finished: run writ import again, or with --abandon" organization=acme`)
	})
	p.stop(t)
	m.wantWhole(t, `one too many: its import is not finished: run writ import again`, `organization "acme"`)
	file := filepath.Join(t.TempDir(), "acme.ndjson")
	if said := m.run(t, exitFailed, "export", "--org", "acme", "-o", file); !strings.Contains(said, "its import into this store is not finished") {
		t.Errorf("writ export says %s, want that the import is not finished", said)
	}
	if said := m.run(t, exitOK, "import", "--abandon", "--org", "acme"); !strings.Contains(said, "is abandoned: 0 rows, what was left of 0 removed rows, and 0 documents are removed") {
		t.Errorf("writ import --abandon says %s, want that nothing was there", said)
	}
	m.wantWhole(t, ": whole: ")
	if said := m.run(t, exitFailed, "import", "--abandon", "--org", "acme"); !strings.Contains(said, `organization "acme": no import of the organization is unfinished`) {
		t.Errorf("writ import --abandon says %s again, want that no import is unfinished", said)
	}
}
