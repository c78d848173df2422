package webhook

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
)

// ApprovalsConfig configures a source of approvals. History and Entries are required.
type ApprovalsConfig struct {
	// History has the decisions that wait for an approval.
	History storage.History
	// Entries returns the audit log's entries of approvals and rejections. It is a method of
	// [storage.Log].
	Entries func(ctx context.Context, org string, kind storage.EntryKind, p storage.Page) ([]*storage.Entry, string,
		error)
	// TTL is the time from a decision until its approval expires. Decided reports whether an
	// approval was approved or rejected. If Decided is nil, the source finds no expired
	// approvals.
	TTL     time.Duration
	Decided func(ctx context.Context, org, approvalID string) (bool, error)
	// Now is the clock. Nil means time.Now.
	Now func() time.Time
}

// Approvals is the [Source] of events about approvals. It reads the committed history and log, so
// decisions never wait for it.
type Approvals struct {
	cfg ApprovalsConfig
	// whole maps an organization to the time of its last complete read. A complete read finds all
	// facts after the position.
	whole map[string]time.Time
}

// NewApprovals returns a source of approvals.
func NewApprovals(cfg ApprovalsConfig) *Approvals {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Approvals{cfg: cfg, whole: make(map[string]time.Time)}
}

const (
	// late is the longest time after which a fact may still appear. Committing takes time, and
	// the clocks of replicas differ.
	late = 2 * storage.MaxSkew
	// soon is the time within which facts usually appear. The source usually reads only this far
	// back. Every wholeEvery it reads everything after the position, and so finds facts that
	// appeared later.
	soon       = 10 * time.Second
	wholeEvery = 15 * time.Second
	// moveEvery bounds how far the position falls behind while there are no events.
	moveEvery = 10 * time.Minute
)

// Name implements [Source].
func (*Approvals) Name() string { return "approvals" }

// Wanted implements [Source].
func (*Approvals) Wanted(w *storage.Webhook) bool {
	return slices.ContainsFunc(w.Events, func(e string) bool {
		return e == storage.ApprovalPending || e == storage.ApprovalApproved || e == storage.ApprovalRejected ||
			e == storage.ApprovalExpired
	})
}

// Since implements [Source]. The position is a time. All facts before the position were passed to
// tell, and no new fact can appear before it. Since reads verdicts before decisions and passes
// them to tell after decisions. So tell always gets a decision before its verdict.
func (a *Approvals) Since(
	ctx context.Context, org, position string, begin time.Time, tell func([]storage.Event, string) error,
) error {
	from := begin
	if position != "" {
		at, err := time.Parse(time.RFC3339Nano, position)
		if err != nil {
			return fmt.Errorf("reading a position of approvals: %w", err)
		}
		if at.After(from) {
			from = at
		}
	}
	now := a.cfg.Now()
	last, known := a.whole[org]
	whole := !known || now.Sub(last) >= wholeEvery
	if recent := now.Add(-soon); !whole && recent.After(from) {
		from = recent
	}
	verdicts, err := a.verdicts(ctx, org, from)
	if err != nil {
		return err
	}
	settled := now.Add(-late)
	for start, end := from, now.Add(late); from.Before(end); {
		rows, to, err := a.between(ctx, org, from, end)
		if err != nil {
			return err
		}
		events := pendingEvents(rows)
		for i := range verdicts {
			if !verdicts[i].At.Before(from) && verdicts[i].At.Before(to) {
				events = append(events, verdicts[i])
			}
		}
		if whole {
			expired, err := a.expired(ctx, org, from, earlier(to, settled))
			if err != nil {
				return err
			}
			events = append(events, expired...)
			if next := earlier(to, settled); len(events) > 0 && next.After(start) || next.Sub(start) > moveEvery {
				position = next.UTC().Format(time.RFC3339Nano)
			}
		}
		if err := tell(events, position); err != nil {
			return err
		}
		from = to
	}
	if whole {
		a.whole[org] = now
	}
	return nil
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// between returns the held decisions of a period, the oldest first. If there are too many, the
// period is cut short. between also returns the end of the period that it read.
func (a *Approvals) between(ctx context.Context, org string, from, to time.Time) ([]*storage.Record, time.Time, error) {
	for {
		rows, all, err := a.list(ctx, org, storage.Filter{Decision: engine.ApprovalRequired, From: from, To: to})
		if err != nil {
			return nil, to, err
		}
		if all {
			slices.Reverse(rows)
			return rows, to, nil
		}
		to = from.Add(to.Sub(from) / 2)
	}
}

// list returns the rows that f selects, the newest first. all is false if there are too many
// rows. list never splits decisions that are within two milliseconds of each other.
func (a *Approvals) list(
	ctx context.Context, org string, f storage.Filter,
) (rows []*storage.Record, all bool, err error) {
	for p := (storage.Page{Limit: storage.MaxPage}); ; {
		page, next, err := a.cfg.History.ListRecords(ctx, org, f, p)
		if err != nil {
			return nil, false, fmt.Errorf("reading held decisions: %w", err)
		}
		rows = append(rows, page...)
		if next == "" {
			return rows, true, nil
		}
		if len(rows) >= storage.MaxPage && f.To.Sub(f.From) > 2*time.Millisecond {
			return nil, false, nil
		}
		p.After = next
	}
}

// verdict is the JSON of a verdict's log entry. ledger.Verdict describes its members.
type verdict struct {
	ApprovalID    string    `json:"approval_id"`
	Verdict       string    `json:"verdict"`
	DecidedAt     time.Time `json:"decided_at"`
	DecidedBy     string    `json:"decided_by"`
	Comment       string    `json:"comment"`
	ApprovedUntil time.Time `json:"approved_until"`
}

// verdicts returns the verdicts since a time, the oldest first. The log orders entries by commit.
// That order is nearly the order of their times.
func (a *Approvals) verdicts(ctx context.Context, org string, from time.Time) (events []storage.Event, err error) {
	for p := (storage.Page{Limit: storage.MaxPage}); ; {
		entries, next, err := a.cfg.Entries(ctx, org, storage.VerdictEntry, p)
		if err != nil {
			return nil, fmt.Errorf("reading verdicts: %w", err)
		}
		for _, e := range entries {
			var v verdict
			if err := json.Unmarshal(e.Body, &v); err != nil {
				return nil, fmt.Errorf("reading a verdict: %w", err)
			}
			if !v.DecidedAt.IsZero() && v.DecidedAt.Before(from.Add(-late)) {
				next = ""
				break
			}
			if event, known := v.event(); known {
				events = append(events, event)
			}
		}
		if p.After = next; next == "" {
			slices.Reverse(events)
			return events, nil
		}
	}
}

// event returns the event of v. Verdicts of the kinds used and revoked have no event.
func (v *verdict) event() (e storage.Event, known bool) {
	types := map[string]string{"approved": storage.ApprovalApproved, "rejected": storage.ApprovalRejected,
		"expired": storage.ApprovalExpired}
	data := map[string]any{"approval_id": v.ApprovalID, "status": v.Verdict, "decided_at": v.DecidedAt}
	if v.DecidedBy != "" {
		data["decided_by"] = v.DecidedBy
	}
	if v.Comment != "" {
		data["comment"] = v.Comment
	}
	if !v.ApprovedUntil.IsZero() {
		data["approved_until"] = v.ApprovedUntil
	}
	return verdictEvent(types[v.Verdict], v.ApprovalID, v.DecidedAt, data), types[v.Verdict] != ""
}

// verdictEvent returns the event of a verdict on an approval. Only the first verdict on an
// approval has an event. So all verdict events of one approval have the same Fact.
func verdictEvent(kind, approvalID string, at time.Time, data map[string]any) storage.Event {
	return storage.Event{Type: kind, Subject: "approval/" + approvalID, Fact: "verdict", At: at, Data: data}
}

// expired returns events for the approvals that expired in a period without a verdict.
func (a *Approvals) expired(ctx context.Context, org string, from, to time.Time) (events []storage.Event, err error) {
	if a.cfg.Decided == nil {
		return nil, nil
	}
	for from, to = from.Add(-a.cfg.TTL), to.Add(-a.cfg.TTL); from.Before(to); {
		rows, end, err := a.between(ctx, org, from, to)
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			decided, err := a.cfg.Decided(ctx, org, r.DecisionID)
			if err != nil {
				return nil, fmt.Errorf("looking up a verdict: %w", err)
			}
			if at := r.DecidedAt.Add(a.cfg.TTL); !decided {
				events = append(events, verdictEvent(storage.ApprovalExpired, r.DecisionID, at,
					map[string]any{"approval_id": r.DecisionID, "status": "expired", "decided_at": at.UTC()}))
			}
		}
		from = end
	}
	return events, nil
}

func pendingEvents(rows []*storage.Record) []storage.Event {
	events := make([]storage.Event, len(rows))
	for i, r := range rows {
		events[i] = storage.Event{
			Type: storage.ApprovalPending, Subject: "approval/" + r.DecisionID, Fact: "pending", At: r.DecidedAt,
			Data: decisionData(r, "approval_id"),
		}
	}
	return events
}

// decisionData returns the data of an event about a decision. name is the member that has the decision's id.
func decisionData(r *storage.Record, name string) map[string]any {
	data := map[string]any{
		name: r.DecisionID, "intent_id": r.IntentID, "policy_id": r.PolicyID,
		"policy_version": r.PolicyVersion,
		"agent_id":       r.AgentID, "action_type": r.ActionType, "resource": r.Resource, "reasons": r.Reasons,
		"decided_at": r.DecidedAt.UTC(),
	}
	if r.Cost != nil {
		data["cost"] = r.Cost
	}
	if len(r.Findings) > 0 {
		data["findings"] = r.Findings
	}
	return data
}
