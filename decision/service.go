// Package decision decides intents and makes the decisions final. Every interface, such as the
// HTTP interface, calls its [Service]. The Service knows nothing of HTTP:
//
//	service, err := decision.Open(decision.Config{Store: store, Ledger: ledger, Scrub: scrubber, Metrics: registry})
//	…
//	slot, err := service.Enter(ctx, organization, admission.Deciding)
//	defer slot.Leave()
//	…decode and validate the intent
//	outs := service.Decide(ctx, decision.Caller{Organization: organization, Slot: &slot}, []decision.Request{{Intent: intent}})
//
// A decision is made in five steps:
//
//	plan ─▶ reserve ─▶ load ─▶ evaluate, or ask a core ─▶ commit
//
// The place in the meter is reserved before anything is loaded, because the reservation has the
// time of the decision. So if an intent is decided after a kill switch was thrown, it is
// evaluated under the kill switch. The answer is the decision that the commit returns, not the
// result of this evaluation. So a replay gives the first answer, even if the policy, the rules,
// the agent or the meter have changed since. A replay is not metered again.
//
// A replay needs the policy that the intent names. No version of a policy is ever removed, so
// that policy is always found. An intent that names an unknown policy is not decided and not
// recorded. Its id stays free until the policy is registered.
//
// Intents that are decided together are one commit, which is one write and one signature.
// [Service.DecideAll] allows all of them or none.
package decision

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"

	"writ.example/writ/decision/admission"
	"writ.example/writ/decision/approval"
	"writ.example/writ/decision/budget"
	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
	"writ.example/writ/rego"
	"writ.example/writ/storage"
	"writ.example/writ/storage/ledger"
	"writ.example/writ/storage/registry"
	"writ.example/writ/storage/retention"
)

// Config configures a Service. Store, Ledger, Scrub and Metrics are required. The Service
// closes none of them.
type Config struct {
	// Store keeps the documents and the history.
	Store storage.Store
	// Ledger makes decisions final. It must write to Store.
	Ledger *ledger.Ledger
	// Scrub replaces secrets before anything is stored. Ledger must use the same scrubber.
	Scrub approval.Scrubber
	// Metrics is the registry in which the Service registers its metrics.
	Metrics prometheus.Registerer
	// Tracer makes spans of the steps of decisions: load, decide and commit. If it is nil, no spans are made.
	Tracer trace.Tracer
	// Log gets the records that operators must know of. If Log is nil, they are discarded.
	Log *slog.Logger
	// Now is the clock. If it is nil, the clock is time.Now.
	Now func() time.Time

	// Plans holds the plans by name. If it is nil, the plans are engine.DefaultPlans. One plan
	// must have the name engine.FreePlan. It is also the plan of an organization whose plan is
	// unknown.
	Plans map[string]engine.Plan
	// RetentionGrace is a time after an organization leaves a plan. During that time, its
	// history is kept as the old plan says. Zero means no such time.
	RetentionGrace time.Duration
	// RequireRegistered denies the intents of agents that the organization has not registered.
	RequireRegistered bool
	// IntentAge is the greatest distance between the issued_at of an intent that was not decided
	// before and the time of its decision: see [AgeError]. Zero means any distance. Open sets it for
	// all replicas on the store, which follow within a minute.
	IntentAge time.Duration
	// ApprovalTTL and ApprovalDetail are the fields TTL and Detail of [approval.Config].
	ApprovalTTL    time.Duration
	ApprovalDetail approval.Detail

	// CacheBytes bounds the size of the compiled policies and rules that are kept. Zero means
	// 256 MiB.
	CacheBytes int64
	// Slots is how many requests are worked on at once. Zero means the number of processors.
	// There are at least two slots, so that costly work leaves one free.
	Slots int
	// Queue bounds the time that a decision waits for a slot. Zero means 250 ms. Work is
	// refused if it waits longer, or if too much other work is waiting.
	Queue time.Duration

	// Core decides in place of the built-in engine. If it is nil, the built-in engine decides.
	Core Core
	// CoreRules says that Core sends the rules with every question.
	CoreRules bool
	// VerifyEvery selects decisions of the built-in engine to verify. One in so many is made
	// again by the Rego of its policy. Zero verifies none.
	VerifyEvery uint64
	// CompileRego compiles conditions in Rego. If it is nil, rego.CompileCondition does.
	CompileRego func(source string) (engine.RegoCondition, error)
	// PrepareQuery prepares the queries that verify decisions. If it is nil, rego.Prepare does.
	PrepareQuery func(
		p *engine.ActionPolicy, rules []engine.Rule, lists condition.Lists, libraries []engine.Library,
	) (Query, error)
}

// DefaultQueue is the time if Config.Queue is zero.
const DefaultQueue = 250 * time.Millisecond

// defaultCache is the size in bytes if Config.CacheBytes is zero.
const defaultCache = 256 << 20

// withDefaults returns c with defaults for its zero values. It returns an error if c is not
// valid.
func (c Config) withDefaults() (Config, error) {
	switch {
	case c.Store == nil:
		return c, errors.New("no store")
	case c.Ledger == nil:
		return c, errors.New("no ledger")
	case c.Scrub == nil:
		return c, errors.New("no scrubber")
	case c.Metrics == nil:
		return c, errors.New("no metrics registry")
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Plans == nil {
		c.Plans = engine.DefaultPlans()
	}
	if c.Plans[engine.FreePlan].Name == "" {
		return c, fmt.Errorf("no plan %q", engine.FreePlan)
	}
	c.CacheBytes = cmp.Or(c.CacheBytes, defaultCache)
	c.Slots = max(2, cmp.Or(c.Slots, runtime.GOMAXPROCS(0)))
	c.Queue = cmp.Or(c.Queue, DefaultQueue)
	if c.CompileRego == nil {
		c.CompileRego = rego.CompileCondition
	}
	if c.PrepareQuery == nil {
		c.PrepareQuery = func(
			p *engine.ActionPolicy, rules []engine.Rule, lists condition.Lists, libraries []engine.Library,
		) (Query, error) {
			return rego.Prepare(p, rules, lists, libraries...)
		}
	}
	return c, nil
}

// Service decides intents. It is safe for concurrent use. Its fields must not be changed.
type Service struct {
	// Store is the store of the Config. Documents are the documents in it.
	Store     storage.Store
	Documents *registry.Registry
	// Sets holds the compiled policies and rules of all organizations.
	Sets *Sets
	// Plans returns the plans of all organizations.
	Plans *Plans
	// Approvals keeps the held decisions that wait for an approver.
	Approvals *approval.Desk
	// Gate gives out the slots in which requests are worked on.
	Gate *admission.Gate

	cfg      Config
	metrics  *metrics
	counters *budget.Counters
	verifier *verifier // nil if decisions are not verified
	sweeper  *retention.Sweeper
	batches  sync.Pool // holds *batch
	age      atomic.Pointer[storage.IntentAge]
	changes  atomic.Int64 // how many changes of the store were heard
	firsts   sync.Map     // by organization: a channel that is closed after its first load

	stop       context.CancelFunc // stops the background work
	background sync.WaitGroup
	unwatch    func()
}

// Open returns a Service that follows the changes of the store. Before the write that made a
// change returns, the Service forgets the compiled documents that the change made stale. It
// works in the background until Close.
func Open(cfg Config) (*Service, error) {
	s, err := newService(cfg)
	if err != nil {
		return nil, fmt.Errorf("opening the decision service: %w", err)
	}
	if err := s.setAge(context.Background()); err != nil {
		return nil, err
	}
	s.start()
	return s, nil
}

// newService returns a Service that does not follow its store yet and does nothing in the
// background.
func newService(cfg Config) (*Service, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	journal, _ := cfg.Store.(storage.Journal)
	s := &Service{
		Store: cfg.Store, Documents: registry.New(cfg.Store), cfg: cfg,
		metrics: newMetrics(cfg.Metrics, slices.Sorted(maps.Keys(cfg.Plans))),
		counters: budget.New(budget.Config{
			History: cfg.Store, Windows: cfg.Store.Windows(), Scrub: cfg.Scrub, Journal: journal,
		}),
		Gate: admission.New(admission.Config{Slots: cfg.Slots, Deadline: cfg.Queue, Metrics: cfg.Metrics}),
	}
	if s.Approvals, err = approval.New(approval.Config{
		Ledger: cfg.Ledger, Store: cfg.Store, Scrub: cfg.Scrub, TTL: cfg.ApprovalTTL, Detail: cfg.ApprovalDetail,
		Log: cfg.Log, Metrics: cfg.Metrics,
	}); err != nil {
		return nil, err
	}
	s.age.Store(&storage.IntentAge{MostMS: cfg.IntentAge.Milliseconds()})
	s.Plans = newPlans(s.Documents, cfg.Plans)
	sets := setsConfig{
		source: s.Documents, options: s.Conditions(), compiled: s.metrics.compiled,
		log: cfg.Log, maxBytes: cfg.CacheBytes,
	}
	results := newVerifications(cfg.Metrics)
	if cfg.VerifyEvery > 0 {
		sets.prepare = cfg.PrepareQuery
	}
	s.Sets = newSets(sets)
	if cfg.VerifyEvery > 0 {
		s.verifier = newVerifier(s.Sets, cfg.VerifyEvery, cfg.Log, results)
	}
	cfg.Metrics.MustRegister(append(s.Sets.metrics(), s.Plans.cache.Metrics("plans")...)...)
	if s.sweeper, err = retention.New(retention.Config{
		Store: cfg.Store, Announce: cfg.Ledger.Retain, Now: cfg.Now, Log: cfg.Log, Metrics: cfg.Metrics,
		Keep: func(ctx context.Context, org string) (time.Duration, error) {
			return s.Plans.retention(ctx, org, cfg.Now(), cfg.RetentionGrace)
		},
		Sessions: func(ctx context.Context, org string, at time.Time) (int, error) {
			return s.Documents.SweepSessions(storage.WithActor(ctx, "sweeper"), org, at)
		},
		Forget:  s.forget,
		Revised: s.Documents.EachRevised, Revisions: s.Documents.SweepRevisions,
	}); err != nil {
		return nil, err
	}
	return s, nil
}

// start follows the store and begins the background work.
func (s *Service) start() {
	s.Sets.OnlyWhile(s.Documents.Fresh)
	s.Plans.cache.OnlyWhile(s.Documents.Fresh)
	s.unwatch = s.Store.Watch(s.changed)
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.background.Go(func() { s.Approvals.Run(ctx) })
	s.background.Go(func() { s.counters.Run(ctx) })
	s.background.Go(func() { s.sweeper.Run(ctx) })
	s.background.Go(func() { s.followAge(ctx) })
	if s.verifier != nil {
		s.background.Go(func() { s.verifier.run(ctx) })
	}
}

// Close ends the background work and waits for it. It must be called after the last
// request has ended and before the ledger is closed.
func (s *Service) Close() {
	s.unwatch()
	s.stop()
	s.background.Wait()
}

// changed forgets the compiled documents that a change of the store made stale.
func (s *Service) changed(c storage.Change) {
	s.changes.Add(1)
	switch c.Kind {
	case storage.PolicyKind:
		s.Sets.InvalidatePolicy(c.Org, c.ID)
	case storage.RuleKind, storage.ListKind, storage.LibraryKind:
		s.Sets.InvalidateRules(c.Org)
	case storage.AgentKind:
		s.Sets.InvalidateAgent(c.Org, c.ID)
		if c.Alias != "" {
			s.Sets.InvalidateAgent(c.Org, c.Alias)
		}
	case storage.StopKind:
		s.Sets.InvalidateStop(c.Org)
	case storage.SessionKind:
		s.Sets.InvalidateSession(c.Org, c.ID)
	case storage.SubscriptionKind:
		s.Plans.cache.Invalidate(c.Org)
	case storage.EverythingChanged:
		s.Sets.InvalidateAll()
		s.Plans.cache.InvalidateAll()
	}
}

// Enter waits for a slot to work for an organization. The error is [ledger.ErrOverloaded]. If
// there is no error, the caller must call Leave on the slot.
func (s *Service) Enter(ctx context.Context, org string, kind admission.Kind) (admission.Slot, error) {
	work := admission.Work{Org: org, Kind: kind, Costly: kind == admission.Deciding && !s.Sets.Plain(org)}
	slot, verdict := s.Gate.Enter(ctx, work)
	if verdict != admission.Admitted {
		return admission.Slot{}, ledger.ErrOverloaded
	}
	return slot, nil
}

// Conditions returns the options with which rules are compiled. They have no libraries.
func (s *Service) Conditions() engine.Options {
	return engine.Options{CompileRego: s.cfg.CompileRego, CompileLibraries: rego.CompileLibraries,
		KeepDigest: s.cfg.Core != nil, KeepJSON: s.cfg.CoreRules}
}

// ConditionsFor returns the options with which a rule of an organization is compiled. They have the
// current libraries if the condition may import one.
func (s *Service) ConditionsFor(
	ctx context.Context, turn condition.Turn, org, doc string,
) (engine.Options, error) {
	o := s.Conditions()
	if !engine.MayImport(doc) {
		return o, nil
	}
	rules, err := s.Sets.Rules(ctx, turn, org)
	if err != nil {
		return o, err
	}
	o.Libraries = rules.Libraries()
	return o, nil
}

// RequiresRegistered reports whether agents that an organization has not registered are denied.
func (s *Service) RequiresRegistered() bool { return s.cfg.RequireRegistered }

// Keeper says what rows keep of intents.
func (s *Service) Keeper() engine.Keeper { return s.cfg.Ledger.Keeper() }

// Now returns the time of the Service's clock.
func (s *Service) Now() time.Time { return s.cfg.Now() }

// Healthy returns an error if nothing could be decided now.
func (s *Service) Healthy(ctx context.Context) error {
	if err := s.Store.Healthy(ctx); err != nil {
		return fmt.Errorf("the store cannot commit: %w", err)
	}
	if err := s.cfg.Ledger.Healthy(ctx); err != nil {
		return fmt.Errorf("the ledger cannot commit: %w", err)
	}
	return nil
}

// Evaluations returns how many intents of an organization were decided in this month. It also
// returns how many the organization's plan allows.
func (s *Service) Evaluations(ctx context.Context, org string) (used, limit int64, err error) {
	plan, err := s.Plans.Of(ctx, nil, org)
	if err != nil {
		return 0, 0, err
	}
	used, err = s.Store.Metered(ctx, org, storage.MonthOf(s.Now()))
	return used, plan.Evaluations, err
}
