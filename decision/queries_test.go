package decision

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"writ.example/writ/bench/corpus"
	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
	"writ.example/writ/internal/must"
)

// prepared is a prepared query. It remembers the policy version and the number of rules.
type prepared struct {
	version int64
	rules   int
	size    int
}

func (p *prepared) Evaluate(*engine.Input) (engine.Decision, []engine.Code, error) {
	return engine.Deny, nil, nil
}

func (p *prepared) Size() int { return p.size }

// queries are Sets that count how many queries they prepare.
type queries struct {
	store *memorySource
	*Sets
	preparations atomic.Int64
	size         int
	failing      error
	log          bytes.Buffer
}

func newQueriesOf(maxBytes int64) *queries {
	q := &queries{store: newSource(), size: 1 << 10}
	q.store.policies[corpus.PolicyID].Revision = 1
	log := slog.New(slog.NewTextHandler(&q.log, nil))
	q.Sets = newSets(setsConfig{source: q.store, maxBytes: maxBytes, log: log, prepare: func(p *engine.ActionPolicy, rules []engine.Rule, _ condition.Lists, _ []engine.Library) (Query, error) {
		q.preparations.Add(1)
		return &prepared{p.Version, len(rules), q.size}, q.failing
	}})
	return q
}

// current loads the current documents and returns the query for them.
func (q *queries) current(t *testing.T) (*prepared, error) {
	t.Helper()
	set := must.Get(q.Load(t.Context(), nil, corpus.Organization, corpus.PolicyID, corpus.Agent))(t)
	query, err := q.query(t.Context(), corpus.Organization, set)
	if err != nil {
		return nil, err
	}
	return query.(*prepared), nil
}

func TestSets_QueriesFollowPolicyVersionsAndRules(t *testing.T) {
	q := newQueriesOf(1 << 20)
	steps := []struct {
		name         string
		change       func()
		version      int64
		rules        int
		preparations int64
	}{
		{"at first", func() {}, 3, 0, 1},
		{"again", func() {}, 3, 0, 1},
		{"a kill switch", func() { q.InvalidateAgent(corpus.Organization, corpus.Agent) }, 3, 0, 1},
		{"a rule", func() {
			q.store.change(func() {
				q.store.rules, q.store.revision = []engine.Rule{{ID: "r", Name: "r", Condition: "{}", Action: `{"decision":"deny"}`, IsActive: true}, {ID: "off"}}, 2
			})
			q.InvalidateRules(corpus.Organization)
		}, 3, 1, 2},
		{"a version", func() {
			next := corpus.ReferencePolicy()
			next.Version, next.Revision = 4, 3
			q.store.change(func() { q.store.policies[corpus.PolicyID] = next })
			q.InvalidatePolicy(corpus.Organization, corpus.PolicyID)
		}, 4, 1, 3},
		{"everything forgotten", q.InvalidateAll, 4, 1, 4},
	}
	for _, step := range steps {
		step.change()
		got, err := q.current(t)
		if err != nil || got.version != step.version || got.rules != step.rules || q.preparations.Load() != step.preparations {
			t.Errorf("%s: query of %+v, %v after %d preparations, want version %d with %d rules after %d",
				step.name, got, err, q.preparations.Load(), step.version, step.rules, step.preparations)
		}
		if stats := q.queries.Stats(); stats.Entries != 1 || stats.Loads != step.preparations {
			t.Errorf("%s: %d queries are kept, %d were loaded, want 1, %d: a query of an earlier version only takes room",
				step.name, stats.Entries, stats.Loads, step.preparations)
		}
	}
}

// TestSets_QueriesOutliveStaleness checks a stale store. Documents are read each time, but the
// query of an unchanged version is kept.
func TestSets_QueriesOutliveStaleness(t *testing.T) {
	q := newQueriesOf(1 << 20)
	q.OnlyWhile(func() bool { return false })
	for range 3 {
		if _, err := q.current(t); err != nil {
			t.Fatal(err)
		}
	}
	if n := q.preparations.Load(); n != 1 {
		t.Errorf("a store that is not heard of = %d preparations of one version, want 1", n)
	}
}

func TestSets_QueriesArePreparedOnceHoweverManyWait(t *testing.T) {
	q := newQueriesOf(1 << 20)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			if _, err := q.current(t); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := q.preparations.Load(); n != 1 {
		t.Errorf("16 who ask at once = %d preparations, want 1", n)
	}
}

func TestSets_QueriesThatCannotBePreparedAreKeptToo(t *testing.T) {
	const budget = 1 << 20
	for name, tt := range map[string]struct {
		size    int
		failing error
		want    string
	}{
		"an error":  {0, errors.New("rule r cannot be said"), "rule r cannot be said"},
		"too large": {budget / 4, nil, "all queries may take 262144"},
	} {
		t.Run(name, func(t *testing.T) {
			q := newQueriesOf(budget)
			q.size, q.failing = tt.size, tt.failing
			for range 3 {
				if _, err := q.current(t); !errors.Is(err, errUnprepared) {
					t.Errorf("query = %v, want %v", err, errUnprepared)
				}
			}
			if got := q.log.String(); strings.Count(got, tt.want) != 1 {
				t.Errorf("log = %s, want %q once", got, tt.want)
			}
			if n := q.preparations.Load(); n != 1 {
				t.Errorf("%d preparations of what cannot be prepared, want 1", n)
			}
		})
	}
}

func TestSets_QueriesAreBounded(t *testing.T) {
	q := newQueriesOf(1 << 20)
	q.size = 100 << 10
	policy := must.Get(engine.CompilePolicy(corpus.ReferencePolicy()))(t)
	rules := engine.CompileRules(nil, engine.Options{})
	for revision := range int64(10) {
		set := engine.Set{Policy: policy, Rules: rules, Revisions: engine.Revisions{Policy: revision}}
		if _, err := q.query(t.Context(), corpus.Organization, set); err != nil {
			t.Fatal(err)
		}
	}
	if stats := q.queries.Stats(); stats.Bytes > 1<<18 || stats.Entries != 2 || stats.Evictions != 8 {
		t.Errorf("of 10 queries of 100 KiB in 256 KiB: %+v, want 2 kept and 8 evicted", stats)
	}
}

func TestSets_WithoutQueries(t *testing.T) {
	sets := newSets(setsConfig{source: newSource(), maxBytes: 1 << 20})
	sets.InvalidatePolicy(corpus.Organization, corpus.PolicyID)
	sets.InvalidateRules(corpus.Organization)
	sets.InvalidateAll()
	if got := evaluate(t, sets, corpus.AllowedIntent()); got != engine.Allow {
		t.Errorf("Evaluate = %v, want allow", got)
	}
}
