package api

import (
	"context"
	"maps"
	"time"

	"writ/engine"
	"writ/storage"
)

// Policy implements storage.Store.
func (f *faultStore) Policy(ctx context.Context, org, id string) (*engine.ActionPolicy, error) {
	if err := f.fault("Policy"); err != nil {
		return nil, err
	}
	p, err := f.Store.Policy(ctx, org, id)
	if err != nil || f.corrupt == nil {
		return p, err
	}
	bad := *p
	f.corrupt(&bad)
	return &bad, nil
}

// PutPolicy implements storage.Store.
func (f *faultStore) PutPolicy(ctx context.Context, p *engine.ActionPolicy, limit int) (bool, error) {
	if err := f.fault("PutPolicy"); err != nil {
		return false, err
	}
	return f.Store.PutPolicy(ctx, p, limit)
}

// AllRules implements storage.Store.
func (f *faultStore) AllRules(ctx context.Context, org string) ([]engine.Rule, error) {
	if err := f.fault("AllRules"); err != nil {
		return nil, err
	}
	return f.Store.AllRules(ctx, org)
}

// Agent implements storage.Store.
func (f *faultStore) Agent(ctx context.Context, org, id string) (*engine.Agent, error) {
	if err := f.fault("Agent"); err != nil {
		return nil, err
	}
	return f.Store.Agent(ctx, org, id)
}

// PutToken implements storage.Tokens.
func (f *faultStore) PutToken(ctx context.Context, t *storage.Token, maxTokens int) error {
	if err := f.fault("PutToken"); err != nil {
		return err
	}
	return f.Store.PutToken(ctx, t, maxTokens)
}

// Token implements storage.Store.
func (f *faultStore) Token(ctx context.Context, id string) (*storage.Token, error) {
	if err := f.fault("Token"); err != nil {
		return nil, err
	}
	return f.Store.Token(ctx, id)
}

// Subscription implements storage.Store.
func (f *faultStore) Subscription(ctx context.Context, org string) (*storage.Subscription, error) {
	if err := f.fault("Subscription"); err != nil {
		return nil, err
	}
	return f.Store.Subscription(ctx, org)
}

// UpdateSubscription implements storage.Store.
func (f *faultStore) UpdateSubscription(
	ctx context.Context, org string, change func(*storage.Subscription) bool,
) (*storage.Subscription, error) {
	if err := f.fault("UpdateSubscription"); err != nil {
		return nil, err
	}
	return f.Store.UpdateSubscription(ctx, org, change)
}

// Metered implements storage.Store.
func (f *faultStore) Metered(ctx context.Context, org string, m storage.Month) (int64, error) {
	if err := f.fault("Metered"); err != nil {
		return 0, err
	}
	return f.Store.Metered(ctx, org, m)
}

// Decided implements storage.Store.
func (f *faultStore) Decided(ctx context.Context, org, intentID string) (*storage.Record, error) {
	if err := f.fault("Decided"); err != nil {
		return nil, err
	}
	return f.Store.Decided(ctx, org, intentID)
}

// Commit implements storage.Store. "Commit" fails before anything is written,
// "Commit lost answer" after everything is.
func (f *faultStore) Commit(ctx context.Context, batch []*storage.Record, seal storage.Seal) ([]*storage.Record, error) {
	if err := f.fault("Commit"); err != nil {
		return nil, err
	}
	existing, err := f.Store.Commit(ctx, batch, seal)
	if fault := f.fault("Commit lost answer"); fault != nil {
		return nil, fault
	}
	return existing, err
}

// Healthy implements storage.Store.
func (f *faultStore) Healthy(ctx context.Context) error {
	if err := f.fault("Healthy"); err != nil {
		return err
	}
	return f.Store.Healthy(ctx)
}

// CountPolicies implements storage.Store.
func (f *faultStore) CountPolicies(ctx context.Context, org string) (int, error) {
	if err := f.fault("CountPolicies"); err != nil {
		return 0, err
	}
	return f.Store.CountPolicies(ctx, org)
}

// CountRules implements storage.Store.
func (f *faultStore) CountRules(ctx context.Context, org string) (int, error) {
	if err := f.fault("CountRules"); err != nil {
		return 0, err
	}
	return f.Store.CountRules(ctx, org)
}

// CountTokens implements storage.Store.
func (f *faultStore) CountTokens(ctx context.Context, org string, at time.Time) (int, error) {
	if err := f.fault("CountTokens"); err != nil {
		return 0, err
	}
	return f.Store.CountTokens(ctx, org, at)
}

// AgentsNamed implements storage.Store.
func (f *faultStore) AgentsNamed(ctx context.Context, org, name string) ([]*engine.Agent, error) {
	if err := f.fault("AgentsNamed"); err != nil {
		return nil, err
	}
	return f.Store.AgentsNamed(ctx, org, name)
}

// CountAgents implements storage.Store.
func (f *faultStore) CountAgents(ctx context.Context, org string) (int, error) {
	if err := f.fault("CountAgents"); err != nil {
		return 0, err
	}
	return f.Store.CountAgents(ctx, org)
}

// Meters implements storage.Store.
func (f *faultStore) Meters(ctx context.Context, m storage.Month, each func(string, int64) error) error {
	if err := f.fault("Meters"); err != nil {
		return err
	}
	return f.Store.Meters(ctx, m, each)
}

// ListRecords implements storage.Store.
func (f *faultStore) ListRecords(ctx context.Context, org string, filter storage.Filter, p storage.Page) ([]*storage.Record, string, error) {
	if err := f.fault("ListRecords"); err != nil {
		return nil, "", err
	}
	return f.Store.ListRecords(ctx, org, filter, p)
}

// UpdateRule implements storage.Store.
func (f *faultStore) UpdateRule(
	ctx context.Context, org, id string, change func(engine.Rule) (engine.Rule, error),
) (*engine.Rule, error) {
	if err := f.fault("UpdateRule"); err != nil {
		return nil, err
	}
	return f.Store.UpdateRule(ctx, org, id, change)
}

// DeleteRule implements storage.Store.
func (f *faultStore) DeleteRule(ctx context.Context, org, id string) error {
	if err := f.fault("DeleteRule"); err != nil {
		return err
	}
	return f.Store.DeleteRule(ctx, org, id)
}

// RevokeToken implements storage.Store.
func (f *faultStore) RevokeToken(ctx context.Context, org, id string, at time.Time) error {
	if err := f.fault("RevokeToken"); err != nil {
		return err
	}
	return f.Store.RevokeToken(ctx, org, id, at)
}

// SetAgentStatus implements storage.Store.
func (f *faultStore) SetAgentStatus(
	ctx context.Context, org, id string, status engine.AgentStatus, at time.Time,
) (*engine.Agent, error) {
	if err := f.fault("SetAgentStatus"); err != nil {
		return nil, err
	}
	return f.Store.SetAgentStatus(ctx, org, id, status, at)
}

// Record implements storage.Store.
func (f *faultStore) Record(ctx context.Context, org, id string) (*storage.Record, error) {
	if err := f.fault("Record"); err != nil {
		return nil, err
	}
	return f.Store.Record(ctx, org, id)
}

// Settle implements storage.Store.
func (f *faultStore) Settle(ctx context.Context, org, id string, s storage.Settlement) (*storage.Record, error) {
	if err := f.fault("Settle"); err != nil {
		return nil, err
	}
	return f.Store.Settle(ctx, org, id, s)
}

// during returns the calls that do makes, by name.
func (f *faultStore) during(do func()) map[string]int {
	f.mu.Lock()
	f.calls = make(map[string]int)
	f.mu.Unlock()
	do()
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.calls)
}
