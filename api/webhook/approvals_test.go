package webhook_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"writ.example/writ/api/webhook"
	"writ.example/writ/engine"
	"writ.example/writ/storage"
)

// log is a history with its verdicts, the newest last.
type log struct {
	storage.History
	mu       sync.Mutex
	rows     []*storage.Record
	verdicts []*storage.Entry
}

func (l *log) hold(id string, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rows = append(l.rows, &storage.Record{DecisionID: id, Decision: engine.ApprovalRequired, DecidedAt: at})
}

func (l *log) judge(id, verdict string, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	body := fmt.Sprintf(`{"approval_id":%q,"decided_at":%q,"decided_by":"operator:x","entry":"verdict","verdict":%q}`, id, at.UTC().Format(time.RFC3339Nano), verdict)
	l.verdicts = append(l.verdicts, &storage.Entry{Kind: storage.VerdictEntry, Key: id, Body: []byte(body)})
}

// ListRecords implements storage.History. As in real stores, its pages may be short.
func (l *log) ListRecords(_ context.Context, _ string, f storage.Filter, p storage.Page) (page []*storage.Record, next string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return pageOf(l.rows, p, f.Selects)
}

func (l *log) Entries(_ context.Context, _ string, _ storage.EntryKind, p storage.Page) (page []*storage.Entry, next string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return pageOf(l.verdicts, p, func(*storage.Entry) bool { return true })
}

func pageOf[T any](all []T, p storage.Page, keep func(T) bool) (page []T, next string, err error) {
	skip := 0
	if p.After != "" {
		if skip, err = strconv.Atoi(p.After); err != nil {
			return nil, "", err
		}
	}
	for i := len(all) - 1 - skip; i >= 0; i-- {
		if skip++; keep(all[i]) {
			page = append(page, all[i])
		}
		if len(page) == min(p.Limit, 100) && i > 0 {
			return page, strconv.Itoa(skip), nil
		}
	}
	return page, "", nil
}

func (l *log) decided(_ context.Context, _, id string) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.verdicts, func(e *storage.Entry) bool { return e.Key == id }), nil
}

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// told records what a source tells, as "type subject", each fact once.
type told struct {
	t        *testing.T
	source   *webhook.Approvals
	position string
	seen     map[string]bool
	order    []string
	calls    int
	fail     func() error
}

func (o *told) ask() error {
	return o.source.Since(o.t.Context(), org, o.position, noon, func(events []storage.Event, position string) error {
		o.calls++
		if o.fail != nil {
			if err := o.fail(); err != nil {
				return err
			}
		}
		for i := range events {
			if id := events[i].ID(org); !o.seen[id] {
				o.seen[id] = true
				o.order = append(o.order, events[i].Type+" "+strings.TrimPrefix(events[i].Subject, "approval/"))
			}
		}
		o.position = position
		return nil
	})
}

func ask(t *testing.T, l *log, now *time.Time) *told {
	return &told{t: t, seen: make(map[string]bool), source: webhook.NewApprovals(webhook.ApprovalsConfig{
		History: l, Entries: l.Entries, TTL: time.Hour, Decided: l.decided, Now: func() time.Time { return *now },
	})}
}

func (o *told) want(want ...string) {
	o.t.Helper()
	must(o.t, o.ask())
	if diff := cmp.Diff(want, o.order); diff != "" {
		o.t.Errorf("told (-want +got):\n%s", diff)
	}
	o.order = nil
}

// TestApprovals_AreToldInOrder checks that a held decision is told first, and after that its verdict or its expiry.
func TestApprovals_AreToldInOrder(t *testing.T) {
	l, now := &log{}, noon.Add(time.Minute)
	o := ask(t, l, &now)
	l.hold("early", noon.Add(-time.Second))
	l.hold("a", noon)
	l.hold("b", noon.Add(time.Second))
	l.judge("a", "approved", noon.Add(2*time.Second))
	o.want("approval.pending a", "approval.pending b", "approval.approved a")
	now = now.Add(time.Second)
	l.judge("a", "used", now)
	l.hold("c", now)
	l.judge("c", "rejected", now)
	o.want("approval.pending c", "approval.rejected c")
	now = now.Add(5 * time.Second)
	l.hold("late", noon.Add(30*time.Second)) // this decision took that long to be committed
	o.want()
	now = now.Add(10 * time.Second)
	o.want("approval.pending late")
	now = noon.Add(time.Hour + time.Second + 2*time.Minute)
	o.want("approval.expired early")
	now = now.Add(time.Minute)
	o.want("approval.expired b", "approval.expired late")
	now = now.Add(time.Hour)
	o.want()
	if position, err := time.Parse(time.RFC3339Nano, o.position); err != nil || now.Sub(position) < 2*time.Minute {
		t.Errorf("position %s, %v: want it two minutes behind at least", o.position, err)
	}
}

// TestApprovals_NoneIsLeftOut checks that every approval is told, even if there are many and telling fails at any
// point.
func TestApprovals_NoneIsLeftOut(t *testing.T) {
	l, now := &log{}, noon.Add(10*time.Minute)
	want := 0
	for i := range 5000 {
		at := noon.Add(time.Duration(i) * 100 * time.Millisecond)
		if i > 2000 && i < 3200 {
			at = noon.Add(200 * time.Second) // many at the same time
		}
		l.hold(fmt.Sprint(i), at)
		want++
		if i%3 == 0 {
			l.judge(fmt.Sprint(i), "approved", at)
			want++
		}
	}
	o := ask(t, l, &now)
	failures := 0
	o.fail = func() error {
		if failures++; failures%3 == 0 {
			return fmt.Errorf("no")
		}
		return nil
	}
	for range 1000 {
		err := o.ask()
		if len(o.seen) == want {
			break
		}
		if err == nil && now.Sub(noon) > 20*time.Minute {
			break
		}
		if err != nil && failures > 5 {
			o.source = ask(t, l, &now).source // a new source after a crash begins at the stored position
		}
		now = now.Add(time.Second)
	}
	if len(o.seen) != want {
		t.Errorf("%d of %d facts were told", len(o.seen), want)
	}
	for i, what := range o.order {
		if id, ok := strings.CutPrefix(what, "approval.approved "); ok && slices.Index(o.order, "approval.pending "+id) > i {
			t.Errorf("the verdict on %s is told before it was held", id)
		}
	}
	if o.position == "" {
		t.Error("there is no position")
	}
}

// TestUsage_IsToldOnceForAMonthAndLimit checks that a limit that is near is told once for each month and limit.
func TestUsage_IsToldOnceForAMonthAndLimit(t *testing.T) {
	now, used, limit := noon, int64(79), int64(100)
	u := webhook.NewUsage(func(context.Context, string) (int64, int64, error) { return used, limit, nil }, func() time.Time { return now })
	position, facts := "", 0
	ask := func(want int) {
		t.Helper()
		now = now.Add(time.Minute)
		must(t, u.Since(t.Context(), org, position, noon, func(events []storage.Event, next string) error {
			position, facts = next, facts+len(events)
			return nil
		}))
		if facts != want {
			t.Errorf("told %d times with %d of %d used, want %d", facts, used, limit, want)
		}
	}
	ask(0)
	used = 80
	ask(1)
	ask(1)
	limit = 1000
	ask(1)
	used = 900
	ask(2)
	now = now.AddDate(0, 1, 0)
	ask(3)
	limit = 0
	ask(3)
}

// TestDeliverer_TellsFactsOfItsSources checks that the facts of a source are delivered to the webhooks that ask for
// them.
func TestDeliverer_TellsFactsOfItsSources(t *testing.T) {
	l := &log{}
	w := start(t, loopback, func(w *world) []webhook.Source {
		return []webhook.Source{webhook.NewApprovals(webhook.ApprovalsConfig{History: l, Entries: l.Entries, Now: w.now})}
	})
	rc, other := receive(t, nil), receive(t, nil)
	w.hook(org, "h", rc.URL, storage.ApprovalPending, storage.ApprovalApproved)
	w.hook(org, "other", other.URL, storage.ApprovalRejected)
	for i := range 120 {
		id := fmt.Sprint(i)
		l.hold(id, w.now())
		l.judge(id, "approved", w.now())
	}
	w.eventually("all are delivered", func() bool { return len(rc.facts()) >= 240 })
	ids := make(map[string]int)
	rc.mu.Lock()
	for _, h := range rc.headers {
		ids[h.Get("webhook-id")]++
	}
	rc.mu.Unlock()
	if len(ids) != 240 || len(other.facts()) != 0 {
		t.Errorf("%d events, and %d to a webhook that asks for others, want 240 and none", len(ids), len(other.facts()))
	}
}
