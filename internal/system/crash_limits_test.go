package system

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"writ.example/writ/engine"
	"writ.example/writ/examples"
	"writ.example/writ/storage"
)

// overTime is a rule with a limit over time.
type overTime struct {
	name, counter string
	window        time.Duration
	limit         int64
	amount        func(*storage.Record) int64
	of            func(*storage.Record) string
}

func once(*storage.Record) int64 { return 1 }

// paid returns the cost of a row. The load settles for more than was allowed.
func paid(r *storage.Record) int64 {
	if r.Settlement != nil && r.Settlement.AmountMinor != nil {
		return max(r.Cost.AmountMinor, *r.Settlement.AmountMinor)
	}
	return r.Cost.AmountMinor
}

var limitsOverTime = []overTime{
	{
		"agent", `"count":{"by":["agent_id"],"window":"60s"}`, time.Minute, 40, once,
		func(r *storage.Record) string { return r.AgentID },
	},
	{
		"session", `"count":{"by":["session_id"],"window":"1h"}`, time.Hour, 15, once,
		func(r *storage.Record) string { return r.SessionID },
	},
	{
		"paid", `"sum":{"field":"cost.amount_minor","currency":"EUR","by":["session_id","agent_id"],"window":"24h"}`, 24 * time.Hour, 60, paid,
		func(r *storage.Record) string { return r.SessionID + " " + r.AgentID },
	},
	{
		"organization", `"count":{"action_type":"deploy","window":"7d"}`, 7 * 24 * time.Hour, 3000, once,
		func(*storage.Record) string { return "" },
	},
}

// before returns the count of the limit over rows for r, without r.
func (l *overTime) before(rows map[string]*storage.Record, r *storage.Record) (n int64) {
	part := func(r *storage.Record) int64 { return r.DecidedAt.UnixMilli() / (l.window / 60).Milliseconds() }
	for _, o := range rows {
		if o != r && o.Decision == engine.Allow && l.of(o) == l.of(r) && part(o) >= part(r)-60 {
			n += l.amount(o)
		}
	}
	return n
}

// task is an agent's session.
type task struct{ agent, session string }

func newTask(t *testing.T, c client, agent string) task {
	t.Helper()
	var made struct {
		ID string `json:"session_id"`
	}
	c.do(t, http.MethodPost, "/v1/sessions", object{"policy_id": testPolicy, "agent_id": agent, "ttl": 3600}, http.StatusCreated, &made)
	return task{agent, made.ID}
}

// intent returns an intent that costs 5.
func (k task) intent() intent {
	id := uuid.NewString()
	body, err := json.Marshal(object{"policy_id": testPolicy, "session_id": k.session, "intent": object{
		"intent_id": id, "policy_id": testPolicy, "agent_id": k.agent, "action_type": "deploy",
		"resource": "k8s/staging/web", "issued_at": "2026-11-02T10:00:00Z", "cost": object{"amount_minor": 5, "currency": "EUR"},
	}})
	if err != nil {
		panic(err)
	}
	return intent{id, body}
}

// TestCrash_LimitsOverTime kills the real binary while agents in sessions run into limits over several windows, and
// while settlements raise what was paid. After each start no limit is exceeded, and the next intents of each session
// are allowed exactly if the rows of the history leave room for them.
func TestCrash_LimitsOverTime(t *testing.T) {
	kills := rounds(2, 20)
	data, token := newData(t)
	plans := manyEvaluations(t)
	p := start(t, data, plans)
	api := newClient(t, p.url, token)
	policy := object{
		"policy_id": testPolicy, "version": 1, "organization_id": examples.Organization, "agent_id": "bot*",
		"allowed_action_types": []string{"deploy"}, "status": "active", "updated_at": "2026-11-01T09:00:00Z",
	}
	api.do(t, http.MethodPost, "/v1/policies/register", object{"policy": policy}, http.StatusCreated, nil)
	for _, l := range limitsOverTime {
		api.do(t, http.MethodPost, "/v1/rules", object{
			"name": l.name, "condition": fmt.Sprintf(`{%s,"gt":%d}`, l.counter, l.limit), "action": `{"decision":"deny","reason":"too many"}`,
		}, http.StatusCreated, nil)
	}
	s := newSender(t, token, crashWorkers)
	rng := rand.New(rand.NewPCG(11, 12))
	denied, raised := 0, new(atomic.Int64)
	for round := range kills {
		var answers atomic.Int64
		var workers sync.WaitGroup
		url := p.url
		tasks := make([]task, 20)
		for i := range tasks {
			tasks[i] = newTask(t, newClient(t, url, token), fmt.Sprintf("bot-%d-%d", round, i%6))
		}
		for worker := range uint64(crashWorkers) {
			random := rand.New(rand.NewPCG(uint64(round), worker))
			workers.Go(func() {
				for {
					in := tasks[random.IntN(len(tasks))].intent()
					got, err := s.evaluate(url, in)
					if err != nil {
						return // the server was killed
					}
					answers.Add(1)
					var decided struct {
						DecisionID string `json:"decision_id"`
					}
					if json.Unmarshal([]byte(got.body), &decided) != nil || got.status != http.StatusOK {
						t.Errorf("evaluate = %d %s, want 200", got.status, got.body)
						return
					}
					if strings.Contains(got.body, `"decision":"allow"`) && random.IntN(4) == 0 {
						got, err = s.send(http.MethodPost, url+"/v1/actions/record", fmt.Appendf(nil,
							`{"decision_id": %q, "outcome": "executed", "amount_minor": %d, "currency": "EUR"}`,
							decided.DecisionID, 5+random.IntN(20)))
						if err != nil {
							return
						}
						if raised.Add(1); got.status != http.StatusOK {
							t.Errorf("record = %d %s, want 200", got.status, got.body)
						}
					}
				}
			})
		}
		target := 50 + rng.Int64N(crashAnswers/2)
		waitFor(t, "answers", func() bool { return answers.Load() >= target || t.Failed() })
		p.kill(t)
		workers.Wait()
		if t.Failed() {
			return
		}
		p = start(t, data, plans)

		rows := history(t, p.url, token)
		for _, l := range limitsOverTime {
			l.audit(t, rows)
		}
		for i := range 30 {
			in := tasks[i%len(tasks)].intent()
			if i%10 == 0 {
				in = newTask(t, newClient(t, p.url, token), fmt.Sprintf("bot-%d-new", round)).intent()
			}
			got := s.decide(t, p.url, in)
			r := rowOf(t, p.url, token, in.id)
			rows[in.id] = r
			want := engine.Allow
			var why []string
			for _, l := range limitsOverTime {
				n := l.before(rows, r) + l.amount(r)
				if why = append(why, fmt.Sprintf("%s %d of %d", l.name, n, l.limit)); n > l.limit {
					want = engine.Deny
				}
			}
			if r.Decision != want {
				t.Errorf("round %d: the decision is %s, want %v: %v", round, got.body, want, why)
			}
			if want == engine.Deny {
				denied++
			}
		}
	}
	p.stop(t)
	if code, said := verifyData(t, data); code != exitOK {
		t.Errorf("writ verify = exit code %d, %s", code, said)
	}
	if t.Logf("%d kills, %d denials of %d intents after them, %d settlements", kills, denied, 30*kills, raised.Load()); denied == 0 || denied == 30*kills {
		t.Error("the intents after a start do not try both outcomes")
	}
}

// audit checks that no window of a length ever had more than the limit. Settlements may raise what was paid above it.
func (l *overTime) audit(t *testing.T, rows map[string]*storage.Record) {
	t.Helper()
	of := make(map[string][]*storage.Record)
	for _, r := range rows {
		if r.Decision == engine.Allow {
			of[l.of(r)] = append(of[l.of(r)], r)
		}
	}
	for name, all := range of {
		slices.SortFunc(all, func(a, b *storage.Record) int { return a.DecidedAt.Compare(b.DecidedAt) })
		for i, r := range all {
			n := int64(0)
			for _, o := range all[:i+1] {
				if r.DecidedAt.Sub(o.DecidedAt) > l.window {
					continue
				}
				if l.name == "paid" {
					n += o.Cost.AmountMinor
				} else {
					n += l.amount(o)
				}
			}
			if n > l.limit {
				t.Errorf("%s %s: %d in a window, want %d at most", l.name, name, n, l.limit)
			}
		}
	}
}

// rowOf returns the row of an intent.
func rowOf(t *testing.T, url, token, id string) *storage.Record {
	t.Helper()
	var page struct {
		Data []*storage.Record `json:"data"`
	}
	newClient(t, url, token).do(t, http.MethodGet, "/v1/authorizations?intent_id="+id, nil, http.StatusOK, &page)
	if len(page.Data) != 1 {
		t.Fatalf("intent %s has %d rows", id, len(page.Data))
	}
	return page.Data[0]
}
