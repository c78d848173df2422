package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/google/uuid"

	"writ.example/writ/bench/corpus"
	"writ.example/writ/bench/proc"
)

// Move measures `writ export` and `writ import`. It measures rows a second, processor time for
// a row, and the peak of resident memory of each process.
type Move struct {
	Binary  string
	Keep    string // the directory for the exported data; a run fills it if it is empty, the next run measures
	MongoDB string // the URI of a replica set that is also imported into, each time into a new database; may be empty
	Say     func(format string, args ...any)
}

// Run measures the move of an organization with so many rows.
func (m *Move) Run(ctx context.Context, rows int) (err error) {
	dir, err := os.MkdirTemp("", "writ-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	from, to, file := filepath.Join(cmp.Or(m.Keep, dir), fmt.Sprint("from-", rows)), filepath.Join(dir, "to"),
		filepath.Join(dir, "org.ndjson")
	if _, err := os.Stat(from); errors.Is(err, fs.ErrNotExist) {
		if err := m.fill(ctx, from, rows); err != nil || m.Keep != "" {
			return err
		}
	}
	data := filepath.Join(from, "data")
	taking := []string{"import", file, "--keys", filepath.Join(data, "keys.jwks"), "--data", to}
	steps := []struct {
		what string
		args []string
	}{
		{"export", []string{"export", "--org", movedOrganization, "--data", data, "-o", file}},
		{"import", taking},
		{"import again", taking},
		{"verify --chain", []string{"verify", "--chain", "--data", to}},
	}
	if m.MongoDB != "" {
		store := []string{"--store", "mongodb", "--mongodb-uri", m.MongoDB, "--mongodb-database",
			fmt.Sprint("move", time.Now().UnixNano())}
		steps = append(steps, steps[1], steps[0])
		steps[4].what, steps[4].args = "import to MongoDB", slices.Concat(taking, store)
		steps[5].what, steps[5].args = "export of MongoDB",
			append([]string{"export", "--org", movedOrganization, "-o", file + ".again"}, store...)
	}
	for i, s := range steps {
		if err := m.step(ctx, rows, s.what, s.args); err != nil {
			return fmt.Errorf("%s: %w", s.what, err)
		}
		if i > 0 {
			continue
		}
		info, err := os.Stat(file)
		if err != nil {
			return err
		}
		m.Say("%9d rows  file of %d MB", rows, info.Size()/1e6)
	}
	return nil
}

// step runs writ once and prints the measurements.
func (m *Move) step(ctx context.Context, rows int, what string, args []string) error {
	cmd := exec.CommandContext(ctx, m.Binary, args...) //nolint:gosec // the program is this binary
	began := time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	took, spent := time.Since(began), cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime()
	peak, ok := proc.Peak(cmd.ProcessState)
	if !ok {
		return errors.New("the system tells no peak of memory")
	}
	m.Say("%9d rows  %-18s %7.1f s  %7.0f rows/s  %4d µs CPU/row  peak %4d MiB", rows, what, took.Seconds(),
		float64(rows)/took.Seconds(), spent.Microseconds()/int64(rows), peak>>20)
	return nil
}

const (
	movedOrganization = "org"
	// settledEach says that one of so many decisions is settled.
	settledEach = 100
)

// fill makes a server decide rows intents. The data of the server stay in dir.
func (m *Move) fill(ctx context.Context, dir string, rows int) (err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	settled := rows / settledEach
	w := Work{Organization: movedOrganization, Organizations: 1, Policies: 1, History: rows - settled}
	s, err := Program{Name: "writ", Binary: m.Binary, Dir: dir}.Start(ctx, w)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Stop()) }()
	bearer, err := OperatorTokens(filepath.Join(s.data, "operator-secret"))
	if err != nil {
		return err
	}
	token, err := bearer(movedOrganization)
	if err != nil {
		return err
	}
	c := clientAt(s.target.URL, token)
	in := corpus.AllowedIntent()
	for range settled {
		var decided struct {
			ID string `json:"decision_id"`
		}
		in.IntentID = uuid.NewString()
		body := map[string]any{"policy_id": in.PolicyID, "intent": in}
		if err := c.Do(ctx, http.MethodPost, "/v1/policy/evaluate", body, &decided); err != nil {
			return err
		}
		body = map[string]any{"decision_id": decided.ID, "outcome": "executed"}
		if err := c.Do(ctx, http.MethodPost, "/v1/actions/record", body, nil); err != nil {
			return err
		}
	}
	return nil
}
