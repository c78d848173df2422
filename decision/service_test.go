package decision

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"writ.example/writ/bench/corpus"
	"writ.example/writ/decision/admission"
	"writ.example/writ/engine"
	"writ.example/writ/internal/must"
	"writ.example/writ/storage"
	"writ.example/writ/storage/ledger"
	"writ.example/writ/storage/registry"
	"writ.example/writ/storage/storagetest"
)

// opened returns a service that follows its store and works in the background.
func opened(t *testing.T, changes ...func(*Config)) *Service {
	t.Helper()
	s, _ := newPipeline(t, 1000, changes...)
	s.start()
	t.Cleanup(s.Close)
	return s
}

// TestService_FollowsItsStore checks that a change of the store is in force once its write has
// returned.
func TestService_FollowsItsStore(t *testing.T) {
	s := opened(t, func(c *Config) { c.Plans["pro"] = engine.Plan{Name: "pro"} })
	ctx, docs := t.Context(), s.Documents
	session := &engine.Session{
		ID: uuid.NewString(), PolicyID: corpus.PolicyID, AgentID: corpus.Agent, AllowedActionTypes: []string{corpus.AllowedIntent().ActionType},
		Status: engine.SessionActive, CreatedAt: time.Now(), ExpiresAt: time.Now().Add(time.Hour),
	}
	inSession := func(in *engine.Intent) { in.SessionID = session.ID }
	agent := &engine.Agent{ID: uuid.NewString(), Name: "a", ExternalID: corpus.Agent, Status: engine.AgentActive}
	rule := engine.Rule{ID: uuid.NewString(), Name: "r", Condition: `{"metadata.to":{"$in":{"list":"blocked"}}}`, Action: `{"decision":"deny"}`, IsActive: true}
	toBob := func(in *engine.Intent) { in.Metadata = map[string]string{"to": "bob"} }
	toEve := func(in *engine.Intent) { in.Metadata = map[string]string{"to": "eve"} }
	for _, step := range []struct {
		name    string
		change  func() error
		request func(*engine.Intent)
		want    string
	}{
		{"an unknown session", func() error { return nil }, inSession, "the session of an intent: loading session " + session.ID + ": not found"},
		{"a session", func() error { return docs.PutSession(ctx, corpus.Organization, session) }, inSession, "policy.allowed"},
		{"a closed session", func() error {
			_, err := docs.CloseSession(ctx, corpus.Organization, session.ID, time.Now())
			return err
		}, inSession, "session.closed"},
		{"a list", func() error {
			_, _, err := docs.PutList(ctx, corpus.Organization, engine.List{Name: "blocked", Values: []string{"eve"}}, time.Now(), nil, func(*engine.List) error { return nil })
			return errors.Join(err, docs.PutRule(ctx, corpus.Organization, &rule, 0, registry.Uses{Lists: []string{"blocked"}}))
		}, toBob, "policy.allowed"},
		{"another value", func() error {
			_, _, err := docs.PutList(ctx, corpus.Organization, engine.List{Name: "blocked", Values: []string{"bob"}}, time.Now(), nil, func(*engine.List) error { return nil })
			return err
		}, toBob, "rule.deny"},
		{"a rule", func() error {
			return docs.PutRule(ctx, corpus.Organization, &engine.Rule{
				ID: uuid.NewString(), Name: "r", Condition: `{"metadata.to":"eve"}`, Action: `{"decision":"approval_required"}`, IsActive: true,
			}, 0)
		}, toEve, "rule.approval_required"},
		{"an agent", func() error { return docs.PutAgent(ctx, corpus.Organization, agent, 0) }, nil, "policy.allowed"},
		{"the kill switch", func() error {
			_, err := docs.SetAgentStatus(ctx, corpus.Organization, corpus.Agent, engine.AgentDisabled, time.Now(), 0)
			return err
		}, nil, "agent.disabled"},
		{"enabled again", func() error {
			_, err := docs.SetAgentStatus(ctx, corpus.Organization, corpus.Agent, engine.AgentActive, time.Now(), 0)
			return err
		}, nil, "policy.allowed"},
		{"a stop", func() error {
			_, err := docs.Stop(ctx, corpus.Organization, time.Now())
			return err
		}, nil, "organization.stopped"},
		{"resumed", func() error { return docs.Resume(ctx, corpus.Organization, time.Now()) }, nil, "policy.allowed"},
		{"a new version", func() error {
			next := corpus.ReferencePolicy()
			next.Version, next.Status = next.Version+1, engine.StatusRevoked
			_, err := docs.PutPolicy(ctx, next, 0)
			return err
		}, nil, "policy.inactive"},
		{"a plan without evaluations", func() error {
			return storagetest.PutSubscription(ctx, docs, &storage.Subscription{OrganizationID: corpus.Organization, Plan: "pro"})
		}, nil, "policy.inactive usage.limit"},
	} {
		must.Do(t, step.change())
		r := request()
		if step.request != nil {
			step.request(r.Intent)
		}
		out := s.Decide(ctx, caller(), []Request{r})[0]
		got := decisions([]ledger.Outcome{out})
		if errors.Is(out.Err, storage.ErrNotFound) {
			got = out.Err.Error()
		} else if len(out.Record.Reasons) > 1 {
			got += " " + strings.SplitN(out.Record.Reasons[1], ":", 2)[0]
		}
		if got != step.want {
			t.Errorf("%s: Decide = %s, want %s", step.name, got, step.want)
		}
	}
	if used, limit, err := s.Evaluations(ctx, corpus.Organization); used == 0 || limit != 0 || err != nil {
		t.Errorf("Evaluations = %d of %d, %v, want some of none", used, limit, err)
	}
	must.Do(t, s.Healthy(ctx))
}

func TestService_RefusesWorkWhenFull(t *testing.T) {
	s := opened(t, func(c *Config) { c.Slots, c.Queue = 2, time.Millisecond })
	slot := must.Get(s.Enter(t.Context(), corpus.Organization, admission.Deciding))(t)
	if _, err := s.Enter(t.Context(), corpus.Organization, admission.Deciding); !errors.Is(err, ledger.ErrOverloaded) {
		t.Errorf("Enter for an organization with all slots it may have = %v, want %v", err, ledger.ErrOverloaded)
	}
	slot.Leave()
	slot = must.Get(s.Enter(t.Context(), corpus.Organization, admission.Managing))(t)
	slot.Leave()
}

func TestOpen_SaysWhatIsMissing(t *testing.T) {
	s, _ := newPipeline(t, 1)
	for want, change := range map[string]func(*Config){
		"no store":            func(c *Config) { c.Store = nil },
		"no ledger":           func(c *Config) { c.Ledger = nil },
		"no scrubber":         func(c *Config) { c.Scrub = nil },
		"no metrics registry": func(c *Config) { c.Metrics = nil },
		`no plan "free"`:      func(c *Config) { c.Plans = map[string]engine.Plan{"pro": {Name: "pro"}} },
	} {
		cfg := s.cfg
		change(&cfg)
		if _, err := Open(cfg); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("Open = %v, want %s", err, want)
		}
	}
}

// TestService_AFirstReadBeforeAChangeIsNotKept changes each document that the first decision of an
// organization reads, between that read and the caches. A document that was read before the change must
// not be kept.
func TestService_AFirstReadBeforeAChangeIsNotKept(t *testing.T) {
	org := corpus.Organization
	intent := corpus.AllowedIntent()
	agent := &engine.Agent{ID: uuid.NewString(), Name: "a", ExternalID: intent.AgentID, Status: engine.AgentActive}
	rule := engine.Rule{
		ID: uuid.NewString(), Name: "r", Condition: `{"action_type":"` + intent.ActionType + `"}`, Action: `{"decision":"deny"}`, IsActive: true,
	}
	for name, change := range map[string]func(s *Service) error{
		"nothing": func(*Service) error { return nil },
		"agent": func(s *Service) error {
			_, err := s.Documents.SetAgentStatus(t.Context(), org, intent.AgentID, engine.AgentDisabled, time.Now(), 0)
			return err
		},
		"stop": func(s *Service) error {
			_, err := s.Documents.Stop(t.Context(), org, time.Now())
			return err
		},
		"rule": func(s *Service) error { return s.Documents.PutRule(t.Context(), org, &rule, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			s := opened(t)
			must.Do(t, s.Documents.PutAgent(t.Context(), org, agent, 0))
			before := s.changes.Load()
			policy, names := setKey{org, intent.PolicyID}, setKey{org, engine.FoldID(intent.AgentID)}
			docs := must.Get(s.Documents.First(t.Context(), org, policy.id, names.id))(t)
			must.Do(t, change(s))
			s.keepFirst(t.Context(), policy, names, docs, before)
			if s.Sets.rules.peek(org) == nil || s.Plans.cache.peek(org) == nil || s.Sets.policies.peek(policy) == nil {
				t.Error("the caches do not have what was read")
			}
			outs := s.Decide(t.Context(), caller(), []Request{request()})
			want := engine.Deny
			if name == "nothing" {
				want = engine.Allow
			}
			if outs[0].Err != nil || outs[0].Record.Decision != want {
				t.Errorf("Decide after a change of %s = %+v, want %v", name, outs[0], want)
			}
		})
	}
}
