package bench

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"writ.example/writ/authoring/workspace"
	"writ.example/writ/bench/corpus"
	"writ.example/writ/storage/mongodb/mongotest"
)

var sessions struct {
	writ                                     string
	rounds, sessions, clients, each, members int
}

func init() {
	flag.StringVar(&sessions.writ, "sessions", "", "binary of writ: measure a limit by session")
	flag.IntVar(&sessions.rounds, "session-rounds", 3, "rounds that are measured")
	flag.IntVar(&sessions.sessions, "session-count", 150, "new sessions in a round")
	flag.IntVar(&sessions.clients, "session-clients", 6, "clients, each with a session at a time")
	flag.IntVar(&sessions.each, "session-each", 20, "decisions in a session")
	flag.IntVar(&sessions.members, "session-members", 3, "members of MongoDB's replica set; 0 measures the embedded store alone")
}

// TestSessions measures decisions in new sessions, of an organization without a limit and of one with a limit by
// session, in turn, on the embedded store and on MongoDB. A new session is a counter that no process knows.
func TestSessions(t *testing.T) {
	if sessions.writ == "" {
		t.Skip("bench/run.sh sessions measures")
	}
	t.Run("embedded", func(t *testing.T) { measureSessions(t, nil) })
	if sessions.members > 0 {
		t.Run("mongodb", func(t *testing.T) { measureSessions(t, startSet(t, sessions.members)) })
	}
}

func measureSessions(t *testing.T, set *mongotest.Set) {
	p := Program{Name: "writ", Binary: sessions.writ, Dir: t.TempDir()}
	if set != nil {
		p.Args, p.Beside = []string{"--store=mongodb", "--mongodb-uri", set.URI()}, set.Processes()
	}
	s, err := p.Start(t.Context(), Work{Organization: "without", Organizations: 1, Policies: 1})
	must(t, err)
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	without, with := operatorAt(t, s, "without"), operatorAt(t, s, "with")
	_, err = Work{Organization: "with", Organizations: 1, Policies: 1}.register(t.Context(), with, 0)
	must(t, err)
	must(t, with.Do(t.Context(), http.MethodPost, "/v1/rules", map[string]any{
		"name":      "A thousand a session",
		"condition": `{"count":{"by":["session_id"],"window":"1h"},"gt":1000}`,
		"action":    `{"decision":"deny","reason":"more than a thousand actions in a session"}`,
	}, nil))
	var plain, limited []time.Duration
	refused, refusedLimited := make(map[string]int), make(map[string]int)
	for range sessions.rounds {
		plain = append(plain, decideInSessions(t, without, refused)...)
		limited = append(limited, decideInSessions(t, with, refusedLimited)...)
	}
	say("%s: %d rounds of %d new sessions of %d decisions, %d clients", t.Name(), sessions.rounds, sessions.sessions, sessions.each, sessions.clients)
	say("  without a limit:  %s, no decision: %v", percentiles(plain), refused)
	say("  with a limit:     %s, no decision: %v", percentiles(limited), refusedLimited)
	say("  with / without, p50: %.2f", float64(limited[len(limited)/2])/float64(plain[len(plain)/2]))
}

// operatorAt returns a client of an organization's operator that keeps a connection for each client.
func operatorAt(t *testing.T, s *Subject, organization string) workspace.Client {
	t.Helper()
	bearer, err := OperatorTokens(filepath.Join(s.data, "operator-secret"))
	must(t, err)
	token, err := bearer(organization)
	must(t, err)
	c := clientAt(&url.URL{Scheme: s.target.URL.Scheme, Host: s.target.URL.Host}, token)
	c.Transport = &http.Transport{MaxIdleConnsPerHost: sessions.clients}
	return c
}

// decideInSessions makes sessions and decides in each. It returns how long each decision took, and counts in refused
// the answers that are no decision.
func decideInSessions(t *testing.T, c workspace.Client, refused map[string]int) (took []time.Duration) {
	t.Helper()
	var mu sync.Mutex
	var clients sync.WaitGroup
	left := make(chan struct{}, sessions.sessions)
	for range sessions.sessions {
		left <- struct{}{}
	}
	close(left)
	for range sessions.clients {
		clients.Go(func() {
			for range left {
				mine, statuses, err := decideInSession(t, c)
				mu.Lock()
				took = append(took, mine...)
				for answer, n := range maps.All(statuses) {
					refused[answer] += n
				}
				mu.Unlock()
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	clients.Wait()
	if len(took) == 0 {
		t.Fatal("nothing was decided")
	}
	return slices.Clip(took)
}

func decideInSession(t *testing.T, c workspace.Client) (took []time.Duration, refused map[string]int, err error) {
	t.Helper()
	in := corpus.AllowedIntent()
	var session struct {
		ID string `json:"session_id"`
	}
	body := map[string]any{"policy_id": in.PolicyID, "agent_id": in.AgentID, "ttl": 600}
	if err := c.Do(t.Context(), http.MethodPost, "/v1/sessions", body, &session); err != nil {
		return nil, nil, fmt.Errorf("making a session: %w", err)
	}
	refused = make(map[string]int)
	for range sessions.each {
		in.IntentID = uuid.NewString()
		var answer struct {
			Approved bool `json:"approved"`
		}
		began := time.Now()
		err := c.Do(t.Context(), http.MethodPost, "/v1/policy/evaluate",
			map[string]any{"policy_id": in.PolicyID, "session_id": session.ID, "intent": in}, &answer)
		status := (*workspace.AnswerError)(nil)
		switch {
		case errors.As(err, &status):
			refused[fmt.Sprintf("status %d", status.Status)]++
		case err != nil:
			return took, refused, fmt.Errorf("deciding in a session: %w", err)
		case !answer.Approved:
			return took, refused, errors.New("an intent in a session was denied")
		default:
			took = append(took, time.Since(began))
		}
	}
	return took, refused, nil
}
