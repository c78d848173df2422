package api

import (
	"context"
	"fmt"
	"strings"
	"time"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
)

// simulateBody is the body of POST /v1/policy/simulate. If the policy, the rules, the agent's status or whether the
// organization is stopped is left out, it is read from the store. The intent names the policy to read.
type simulateBody struct {
	Policy            *engine.ActionPolicy `json:"policy"`
	PolicyID          string               `json:"policy_id"`
	SessionID         *string              `json:"session_id"`
	Rules             []simulatedRule      `json:"rules"`
	Intent            *engine.Intent       `json:"intent"`
	Agent             *string              `json:"agent"`
	DecidedAt         string               `json:"decided_at"` // the time to decide at, now if it is left out
	Stopped           *bool                `json:"organization_stopped"`
	UsageExceeded     bool                 `json:"usage_exceeded"`
	RequireRegistered *bool                `json:"require_registered_agents"`

	// compiled and ruled are the compiled Policy and Rules. checkSimulate sets them. Each is nil if the body leaves its
	// source out.
	compiled *engine.Policy
	ruled    *engine.RuleSet
	// decidedAt is the time of the simulation.
	decidedAt time.Time
}

// simulatedRule is a rule in the form of POST /v1/rules or of GET /v1/rules. It is active unless it says otherwise.
type simulatedRule struct {
	ID string `json:"id"`
	ruleBody
	CreatedAt time.Time `json:"createdAt"`
	UpdatedAt time.Time `json:"updatedAt"`
}

// simulated is the answer to a simulation. It has no receipt. A simulation makes no row, and nothing can be replayed.
type simulated struct {
	DryRun      bool                `json:"dry_run"`
	Decision    engine.Decision     `json:"decision"`
	Reasons     []string            `json:"reasons"`
	Explanation *engine.Explanation `json:"explanation"`
}

// simulate decides an intent with the built-in engine and explains the decision. It stores, meters and signs nothing.
// The explanation shows the documents. So the caller needs the scopes to read those that come from the store.
func (s *Server) simulate(r *request, in *simulateBody) error {
	if err := s.auth.actFor(&r.who, in.Intent.AgentID); err != nil {
		return err
	}
	var want scopeSet
	if in.Policy == nil {
		want |= scopePolicyRead
	}
	if in.Rules == nil {
		want |= scopeRulesRead
	}
	if err := s.auth.permit(&r.who, want); err != nil {
		return err
	}
	input, err := s.simulatedInput(r, in)
	if err != nil {
		return err
	}
	if input.Counts, err = s.decisions.Counts(r.ctx, r.who.org, in.ruled, input); err != nil {
		return fmt.Errorf("reading the counters of a simulation: %w", err)
	}
	result := engine.Evaluate(in.compiled, in.ruled, input)
	if result.Err != nil {
		return unfinished(r, result)
	}
	return r.ok(simulated{
		DryRun: true, Decision: result.Decision, Reasons: result.Reasons(), Explanation: explanationOf(input.Trace),
	})
}

// unfinished returns the error of a request that ended while a condition was running.
func unfinished(r *request, result engine.Result) error {
	return fmt.Errorf("%w: %w", result.Err, context.Cause(r.ctx))
}

// simulatedInput loads from the store what the body leaves out.
func (s *Server) simulatedInput(r *request, in *simulateBody) (*engine.Input, error) {
	input := &engine.Input{
		Intent: in.Intent, DecidedAt: in.decidedAt, RequireRegistered: s.decisions.RequiresRegistered(),
		Usage: engine.Usage{Exceeded: in.UsageExceeded},
		Keep:  s.decisions.Keeper(), Turn: &r.slot, Ended: r.ctx.Done(), Trace: &engine.Trace{},
	}
	set(&input.RequireRegistered, in.RequireRegistered)
	var err error
	if in.Policy == nil {
		if in.compiled, err = s.decisions.Sets.Policy(r.ctx, &r.slot, r.who.org, in.Intent.PolicyID); err != nil {
			return nil, about("policy", err)
		}
		if err = s.checkPolicy(r, in.compiled.Document()); err != nil {
			return nil, err
		}
	}
	if in.Rules == nil {
		if in.ruled, err = s.decisions.Sets.Rules(r.ctx, &r.slot, r.who.org); err != nil {
			return nil, fmt.Errorf("loading the rules of a simulation: %w", err)
		}
	}
	if id := in.Intent.SessionID; id != "" {
		session, err := s.decisions.Sets.Session(r.ctx, &r.slot, r.who.org, id)
		if err != nil {
			return nil, about("session", err)
		}
		input.Session = engine.InSession{CompiledSession: session, Expired: session.Expired(in.decidedAt)}
	}
	input.Agent, input.Names, err = s.decisions.Sets.Agent(r.ctx, &r.slot, r.who.org, in.Intent.AgentID)
	if err != nil {
		return nil, fmt.Errorf("loading the agent of a simulation: %w", err)
	}
	if input.Stopped, err = s.decisions.Sets.Stopped(r.ctx, &r.slot, r.who.org); err != nil {
		return nil, fmt.Errorf("loading the organization of a simulation: %w", err)
	}
	set(&input.Stopped, in.Stopped)
	if in.Agent != nil {
		input.Agent, _ = simulatedStatus(*in.Agent) // checkSimulate has checked it
	}
	return input, nil
}

func simulatedStatus(name string) (engine.AgentStatus, bool) {
	for _, status := range []engine.AgentStatus{engine.AgentActive, engine.AgentDisabled, engine.AgentUnregistered} {
		if status.String() == name {
			return status, true
		}
	}
	return engine.AgentDisabled, false
}

// checkSimulate reports all mistakes of the body at once. It also compiles the policy and the rules.
func (s *Server) checkSimulate(r *request, in *simulateBody) error {
	var bad fieldErrors
	in.PolicyID = strings.ToLower(in.PolicyID)
	if in.Intent == nil {
		bad.add("intent", "is required")
	} else {
		in.Intent.Normalize()
		bad.merge(in.Intent.Validate())
		bad.facts(in.Intent.Metadata, r.who.scopes)
		in.Intent.SessionID = bad.session(in.SessionID)
		in.policy(&bad)
	}
	if in.decidedAt = r.stamp(); in.DecidedAt != "" {
		at, err := condition.ParseTime(in.DecidedAt)
		if err != nil {
			bad.add("decided_at", err.Error())
		}
		in.decidedAt = engine.ClockTime(at)
	}
	if in.Policy != nil {
		in.Policy.Normalize()
		var err error
		in.compiled, err = engine.CompilePolicy(in.Policy)
		bad.merge(err)
	}
	if in.Agent != nil {
		if _, ok := simulatedStatus(*in.Agent); !ok {
			bad.add("agent", "want active, disabled or unregistered")
		}
	}
	if err := s.compileSimulated(r, in, &bad); err != nil {
		return err
	}
	return bad.err()
}

// policy refuses an intent that names another policy than the body does.
func (in *simulateBody) policy(bad *fieldErrors) {
	switch {
	case in.Policy != nil && in.PolicyID != "":
		bad.add("policy_id", "cannot be given beside policy")
	case in.Policy != nil && !strings.EqualFold(in.Policy.PolicyID, in.Intent.PolicyID):
		bad.add("intent.policy_id", "must be the policy_id of the policy")
	case in.PolicyID != "" && in.PolicyID != in.Intent.PolicyID:
		bad.add("intent.policy_id", "must be the policy_id of the body")
	}
}

// compileSimulated compiles the rules. It takes turns with other work. It compiles only as many rules as one request
// may hold.
func (s *Server) compileSimulated(r *request, in *simulateBody, bad *fieldErrors) error {
	if in.Rules == nil {
		return nil
	}
	var rules []*engine.CompiledRule
	// This is room for some thousands of rules by default, or for a hundred in Rego. They are compiled for this request
	// alone.
	room := s.decisions.Sets.RulesRoom() / 4
	size, wrong := 0, 0
	for i := range in.Rules {
		if r.ctx.Err() != nil {
			return fmt.Errorf("compiling the rules of a simulation: %w", context.Cause(r.ctx))
		}
		r.slot.Yield()
		given := &in.Rules[i]
		rule := given.apply(engine.Rule{
			ID: given.ID, Priority: engine.DefaultPriority, IsActive: true, CreatedAt: given.CreatedAt,
		}, given.UpdatedAt)
		o, err := s.conditions(r, &rule)
		if err != nil {
			return err
		}
		compiled, err := compileRule(&rule, o)
		if err != nil {
			if wrong++; wrong <= condition.MaxMistakes {
				bad.mergeAt(fmt.Sprintf("rules[%d].", i), err)
			}
			continue
		}
		rules = append(rules, compiled)
		if size += compiled.Size(); size > room {
			bad.add("rules",
				fmt.Sprintf(
					"take more than %v MiB once they are compiled: write them shorter, or fewer of them in Rego",
					float64(room)/(1<<20),
				))
			return nil
		}
	}
	lists, err := s.listsOf(r, rules...)
	if err != nil {
		return err
	}
	in.ruled = engine.SetOf(rules, lists)
	return nil
}
