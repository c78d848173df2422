package budget

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
	"writ.example/writ/internal/must"
	"writ.example/writ/internal/scrub"
	"writ.example/writ/storage"
	"writ.example/writ/storage/embedded"
	"writ.example/writ/storage/storagetest"
)

// keeping is a process that decides alone, with a store whose commits are kept.
type keeping struct {
	*testing.T
	random *rand.Rand
	disk   *vfs.MemFS
	store  *embedded.Store
	writer *storagetest.Writer
	scrub  *scrub.Tagger
	k      *Counters
	at     time.Time
	rows   []*storage.Record // that allow and are not settled
	behind int               // Options.WriteBehind
}

func (p *keeping) open() {
	p.store = must.Get(embedded.Open("db", embedded.Options{
		FS: p.disk, Log: slog.New(slog.DiscardHandler), WriteBehind: p.behind,
	}))(p.T)
	p.k = New(Config{History: p.store, Journal: p.store, Scrub: p.scrub})
}

// restart starts the process again, after an orderly end or a crash that loses nothing that was durable.
func (p *keeping) restart(crash bool) {
	disk := p.disk
	if crash && p.behind == 0 {
		disk = p.disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: p.random.IntN(101), RNG: p.random})
	} else if p.random.IntN(2) == 0 {
		ctx, stop := context.WithCancel(p.Context())
		stop()
		p.k.Run(ctx)
	}
	must.Do(p.T, p.store.Close())
	p.disk = disk
	p.open()
}

func (p *keeping) id() string {
	id := storage.IDAt(p.at)
	id[6] = 0x70
	binary.BigEndian.PutUint64(id[8:], 1<<63|p.random.Uint64()>>2)
	return id.String()
}

func (p *keeping) intent() *engine.Intent {
	agents := []string{"a", "b", mail}
	return &engine.Intent{
		IntentID: p.id(), AgentID: agents[p.random.IntN(len(agents))], SessionID: fmt.Sprint(p.random.IntN(3)),
		ActionType: []string{"email.send", "pay"}[p.random.IntN(2)], Cost: &engine.Cost{AmountMinor: 1 + p.random.Int64N(9), Currency: "EUR"},
	}
}

// decide allows an intent, or reserves it in vain.
func (p *keeping) decide(counters []*condition.Counter) {
	in := p.intent()
	r := must.Get(p.k.Read(p.Context(), "org", counters, &engine.Input{Intent: in}, p.at))(p.T)
	if !reserve(p, r) {
		p.Fatal("not reserved")
	}
	if p.random.IntN(5) == 0 {
		r.Release()
		return
	}
	row := p.writer.Record("org", func(row *storage.Record) {
		row.IntentID, row.ActionType, row.SessionID, row.Cost = in.IntentID, in.ActionType, in.SessionID, in.Cost
		row.AgentID = p.scrub.Name(in.AgentID, in.AgentID)
		row.DecisionID, row.DecidedAt, row.Decision = p.id(), p.at, engine.Allow
	})
	must.Get(p.writer.Commit(p.Context(), p.store, row))(p.T)
	r.Commit()
	p.rows = append(p.rows, row)
}

func (p *keeping) settle(counters []*condition.Counter) {
	if len(p.rows) == 0 {
		return
	}
	i := p.random.IntN(len(p.rows))
	row := p.rows[i]
	p.rows = append(p.rows[:i], p.rows[i+1:]...)
	n := 1 + p.random.Int64N(20)
	s := storage.Settlement{Outcome: "failed", Releases: true, RecordedAt: p.at}
	if p.random.IntN(2) == 0 {
		s = storage.Settlement{Outcome: storage.Executed, AmountMinor: &n, Currency: "EUR", Releases: p.random.IntN(2) == 0, RecordedAt: p.at}
	}
	settling := must.Get(p.k.Settling(p.Context(), counters, "org", row.DecisionID, s, p.at))(p.T)
	must.Get(p.writer.Settle(p.Context(), p.store, row, s))(p.T)
	settling.End(p.Context(), true)
}

// check compares the counts with those that the rows have.
func (p *keeping) check(counters []*condition.Counter) {
	p.Helper()
	in := &engine.Input{Intent: p.intent()}
	got := must.Get(p.k.Simulate(p.Context(), "org", counters, in, p.at))(p.T)
	want := must.Get(New(Config{History: p.store, Scrub: p.scrub}).Simulate(p.Context(), "org", counters, in, p.at))(p.T)
	for i := range got {
		if got[i].N != want[i].N {
			p.Fatalf("%s of %s in %s: %d are kept, %d are in the rows", got[i].Counter.Key, in.Intent.AgentID, in.Intent.SessionID, got[i].N, want[i].N)
		}
	}
}

// TestKept_IsWhatTheRowsSay checks that what is kept equals what the rows have, whatever happens: allowances,
// settlements, memory that is too small, a clock that is set, restarts and crashes.
func TestKept_IsWhatTheRowsSay(t *testing.T) {
	var counters []*condition.Counter
	for _, spec := range []string{
		byAgent, spent, `{"count":{"by":["session_id"],"window":"60s"},"gt":1}`,
		`{"sum":{"field":"cost.amount_minor","currency":"EUR","by":["session_id","agent_id"],"window":"2h"},"gt":1}`,
	} {
		c := counter(t, spec)
		c.Revision = 1
		counters = append(counters, c)
	}
	seeds := uint64(8) // a run takes seconds under the race detector
	if os.Getenv("WRIT_SOAK") != "" {
		seeds = 500
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			p := &keeping{
				T: t, random: rand.New(rand.NewPCG(seed, 5)), disk: vfs.NewCrashableMem(), writer: storagetest.NewWriter(),
				scrub: taggerOf(t, "n", "o"), at: noon,
			}
			if seed%4 == 3 {
				p.behind = 3
			}
			steps := []time.Duration{0, 15 * time.Minute, 15 * time.Minute, 5 * time.Hour}[seed/2%4]
			p.open()
			defer func() { must.Do(t, p.store.Close()) }()
			for range 150 {
				p.at = p.at.Add(time.Duration(p.random.IntN(40)) * time.Second)
				if steps > 0 && p.random.IntN(4) == 0 { // the clock is set
					p.at = p.at.Add(time.Duration(p.random.Int64N(2*int64(steps))) - steps).Truncate(time.Millisecond)
				}
				switch p.random.IntN(12) {
				case 0, 1:
					p.settle(counters)
				case 2:
					p.check(counters)
				case 3:
					must.Do(t, p.k.keeper.follow(t.Context()))
				case 4:
					p.k.max = 0 // too small
					p.k.sweep(p.at)
					p.k.max = maxWindows
				case 5:
					if p.random.IntN(3) == 0 {
						p.restart(p.random.IntN(2) == 0)
					}
				default:
					p.decide(counters)
				}
				p.check(counters[p.random.IntN(len(counters)):])
			}
		})
	}
}

// TestKept_LimitOfTwentyAllowsTwenty checks that 200 racers are allowed 20 times, while commits are followed, memory
// is too small and settlements fail to free a place. After a crash none is allowed.
func TestKept_LimitOfTwentyAllowsTwenty(t *testing.T) {
	p := &keeping{
		T: t, random: rand.New(rand.NewPCG(1, 5)), disk: vfs.NewCrashableMem(), writer: storagetest.NewWriter(),
		scrub: taggerOf(t, "n"), at: noon.Add(24 * time.Hour), // the writer begins then
	}
	p.open()
	c := counter(t, byAgent)
	var allowed atomic.Int64
	try := func() {
		for {
			in := email("a")
			r, err := p.k.Read(t.Context(), "org", []*condition.Counter{c}, &engine.Input{Intent: in}, p.at)
			if err != nil || r.Counts()[0].N > 20 {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if !reserve(t, r) {
				continue
			}
			row := p.writer.Record("org", func(row *storage.Record) {
				row.IntentID, row.ActionType, row.AgentID = in.IntentID, in.ActionType, in.AgentID
				row.Decision = engine.Allow
			})
			if _, err := p.writer.Commit(t.Context(), p.store, row); err != nil {
				t.Error(err)
			}
			r.Commit()
			allowed.Add(1)
			s := storage.Settlement{Outcome: "failed", RecordedAt: p.at}
			settling, err := p.k.Settling(t.Context(), []*condition.Counter{c}, "org", row.DecisionID, s, p.at)
			if err != nil {
				t.Error(err)
				return
			}
			settling.End(t.Context(), false)
			return
		}
	}
	var racers sync.WaitGroup
	for i := range 200 {
		racers.Go(func() {
			try()
			switch i % 20 {
			case 0:
				must.Do(t, p.k.keeper.follow(t.Context()))
			case 1:
				p.k.leases.Lock()
				p.k.max = 0
				p.k.sweep(p.at)
				p.k.max = maxWindows
				p.k.leases.Unlock()
			}
		})
	}
	racers.Wait()
	p.restart(true)
	defer func() { must.Do(t, p.store.Close()) }()
	if try(); allowed.Load() != 20 {
		t.Errorf("%d were allowed, want 20", allowed.Load())
	}
}

// keptOf returns a process with a store, and a counter of a minute.
func keptOf(t *testing.T, spec string) (*keeping, []*condition.Counter) {
	c := counter(t, spec)
	c.Revision = 1
	p := &keeping{
		T: t, random: rand.New(rand.NewPCG(1, 5)), disk: vfs.NewCrashableMem(), writer: storagetest.NewWriter(),
		scrub: taggerOf(t, "n"), at: noon,
	}
	p.open()
	t.Cleanup(func() { must.Do(t, p.store.Close()) })
	return p, []*condition.Counter{c}
}

// allow decides an intent of an agent. It returns the row.
func (p *keeping) allow(counters []*condition.Counter, agent string) *storage.Record {
	p.Helper()
	in := p.intent()
	in.AgentID, in.ActionType, in.SessionID = agent, "pay", "s"
	r := must.Get(p.k.Read(p.Context(), "org", counters, &engine.Input{Intent: in}, p.at))(p.T)
	if !reserve(p, r) {
		p.Fatal("not reserved")
	}
	row := p.writer.Record("org", func(row *storage.Record) {
		row.IntentID, row.ActionType, row.SessionID, row.Cost = in.IntentID, in.ActionType, in.SessionID, in.Cost
		row.AgentID, row.DecisionID, row.DecidedAt, row.Decision = agent, p.id(), p.at, engine.Allow
	})
	must.Get(p.writer.Commit(p.Context(), p.store, row))(p.T)
	r.Commit()
	return row
}

// counted checks the count of an agent, without the intent that asks.
func (p *keeping) counted(counters []*condition.Counter, agent string, want int64) {
	p.Helper()
	in := p.intent()
	in.AgentID, in.ActionType, in.SessionID, in.Cost = agent, "pay", "s", &engine.Cost{AmountMinor: 1, Currency: "EUR"}
	got := must.Get(p.k.Simulate(p.Context(), "org", counters, &engine.Input{Intent: in}, p.at))(p.T)
	if got[0].N-1 != want {
		p.Fatalf("%s has %d, want %d", agent, got[0].N-1, want)
	}
}

const (
	paysInAMinute  = `{"count":{"by":["agent_id"],"action_type":"pay","window":"60s"},"gt":20}`
	spentInAMinute = `{"sum":{"field":"cost.amount_minor","currency":"EUR","by":["agent_id"],"window":"60s"},"gt":20}`
)

// TestKept_AClockThatIsAheadForOneDecision checks that nothing is lost if the clock is an hour ahead for one decision,
// of the same agent or another, and if memory is swept and commits are followed meanwhile.
func TestKept_AClockThatIsAheadForOneDecision(t *testing.T) {
	for _, agent := range []string{"a", "b"} {
		for _, restart := range []bool{false, true} {
			p, counters := keptOf(t, paysInAMinute)
			for range 20 {
				p.allow(counters, "a")
			}
			must.Do(t, p.k.keeper.follow(t.Context()))
			p.at = noon.Add(time.Hour)
			p.allow(counters, agent)
			p.k.leases.Lock()
			p.k.swept, p.k.max = 0, 1 // sweeps now
			p.k.sweep(p.at)
			p.k.max = maxWindows
			p.k.leases.Unlock()
			must.Do(t, p.k.keeper.follow(t.Context()))
			p.at = noon.Add(time.Second)
			if restart {
				p.restart(true)
			}
			p.counted(counters, "a", 20)
			p.allow(counters, "a")
			p.counted(counters, "a", 21)
		}
	}
}

// TestKept_AClockThatWasAheadForLong checks that windows are read again if the clock goes back after old parts
// were dropped, and that the rows that were decided meanwhile count when the clock comes there again.
func TestKept_AClockThatWasAheadForLong(t *testing.T) {
	p, counters := keptOf(t, paysInAMinute)
	for range 20 {
		p.allow(counters, "a")
	}
	p.at = noon.Add(time.Hour)
	for range 2 * dropAfter {
		p.allow(counters, "b")
		must.Do(t, p.k.keeper.follow(t.Context()))
	}
	p.at = noon.Add(time.Second)
	p.counted(counters, "a", 20)
	p.counted(counters, "b", 0)
	p.allow(counters, "b")
	p.restart(true)
	p.counted(counters, "a", 20)
	p.counted(counters, "b", 1)
	p.at = noon.Add(time.Hour)
	p.counted(counters, "a", 0)
	p.counted(counters, "b", 2*dropAfter)
}

// TestKept_ASettlementThatRaises checks that a settlement that raises an amount counts, whenever the window is read
// between the preparation of the settlement and its end.
func TestKept_ASettlementThatRaises(t *testing.T) {
	n := int64(1000)
	s := storage.Settlement{Outcome: storage.Executed, AmountMinor: &n, Currency: "EUR", RecordedAt: noon}
	for when := range 4 { // the window is read before one of the steps
		p, counters := keptOf(t, spentInAMinute)
		row := p.allow(counters, "a")
		p.restart(true)
		if when == 0 {
			p.allow(counters, "b")
		}
		settling := must.Get(p.k.Settling(t.Context(), counters, "org", row.DecisionID, s, p.at))(t)
		if when == 1 || when == 3 {
			p.counted(counters, "a", 1000) // it is about to be stored
		}
		must.Get(p.writer.Settle(t.Context(), p.store, row, s))(t)
		if when == 2 {
			in := p.intent()
			in.AgentID = "a"
			must.Get(p.k.Simulate(t.Context(), "org", counters, &engine.Input{Intent: in}, p.at))(t) // at least
		}
		settling.End(t.Context(), true)
		p.counted(counters, "a", 1000)
		p.restart(true)
		p.counted(counters, "a", 1000)
	}
}

// cancelling is a journal that ends a context after some calls.
type cancelling struct {
	storage.Journal
	after atomic.Int64
	stop  context.CancelFunc
}

func (j *cancelling) Derive(ctx context.Context, d storage.Derivation) error {
	if j.after.Add(-1) == 0 {
		j.stop()
	}
	return j.Journal.Derive(ctx, d)
}

// TestKept_ACallerGivesUp checks that a series counts every commit after a caller gave up while the series was filled,
// joined, read or left.
func TestKept_ACallerGivesUp(t *testing.T) {
	for after := range 12 {
		p, counters := keptOf(t, paysInAMinute)
		other := counter(t, spentInAMinute)
		other.Revision = 1
		j := &cancelling{Journal: p.store}
		p.k = New(Config{History: p.store, Journal: j, Scrub: p.scrub})
		p.allow([]*condition.Counter{other}, "b") // the run follows
		total := int64(0)
		commit := func(n int) {
			for range n {
				p.allow([]*condition.Counter{other}, "a")
				total++
			}
		}
		commit(5)
		ctx, stop := context.WithCancel(t.Context())
		j.stop = stop
		j.after.Store(int64(after))
		of := keyOf("org", counters[0], "a", "s").seriesKey
		p.k.keeper.open(ctx, of, counters[0], bucketAt(counters[0], p.at)-90, &filling{since: noon.Add(-time.Hour), early: 10}) // it may fail
		in := &engine.Input{Intent: p.intent()}
		in.Intent.ActionType = "pay"
		p.k.Simulate(ctx, "org", counters, in, p.at) // it may fail
		commit(3)
		if s := p.k.series[keyOf("org", counters[0], "a", "s").seriesKey]; s != nil { // it is left, in vain
			p.k.leases.Lock()
			s.leave()
			delete(p.k.series, keyOf("org", counters[0], "a", "s").seriesKey)
			p.k.kept -= len(s.windows)
			p.k.leases.Unlock()
			p.k.keeper.follow(ctx) // it may fail
		}
		stop()
		commit(2)
		p.k.keeper.follow(ctx) // it fails
		must.Do(t, p.k.keeper.follow(t.Context()))
		commit(1)
		p.counted(counters, "a", total)
		p.restart(true)
		p.counted(counters, "a", total)
	}
}

// slow is a journal that waits before each slice of a fill but the first.
type slow struct {
	storage.Journal
	gate chan struct{}
}

func (j *slow) Allowed(ctx context.Context, org string, from time.Time, upTo uint64, yield func(), f func(*storage.Record) error) error {
	return j.Journal.Allowed(ctx, org, from, upTo, func() { yield(); <-j.gate }, f)
}

// TestKept_ANewRuleIsUnknownUntilItIsFilled checks that no decision waits for a long fill, and that none of those that
// are allowed meanwhile is forgotten or counted if it was not stored.
func TestKept_ANewRuleIsUnknownUntilItIsFilled(t *testing.T) {
	p, counters := keptOf(t, paysInAMinute)
	rows := make([]*storage.Record, 300)
	for i := range rows {
		rows[i] = p.writer.Record("org", func(row *storage.Record) {
			row.ActionType, row.AgentID, row.DecisionID, row.DecidedAt, row.Decision = "pay", "a", p.id(), p.at, engine.Allow
		})
	}
	must.Get(p.writer.Commit(t.Context(), p.store, rows...))(t)
	j := &slow{p.store, make(chan struct{})}
	p.k = New(Config{History: p.store, Journal: j, Scrub: p.scrub})
	p.k.keeper.early = 0
	read := func() (*engine.Intent, *Reading) {
		in := p.intent()
		in.AgentID, in.ActionType = "a", "pay"
		return in, must.Get(p.k.Read(t.Context(), "org", counters, &engine.Input{Intent: in}, p.at))(t)
	}
	commit := func(in *engine.Intent, r *Reading) {
		row := p.writer.Record("org", func(row *storage.Record) {
			row.IntentID, row.ActionType, row.AgentID, row.DecisionID, row.DecidedAt, row.Decision = in.IntentID, "pay", "a", p.id(), p.at, engine.Allow
		})
		must.Get(p.writer.Commit(t.Context(), p.store, row))(t)
		r.Commit()
	}
	reserved := func() (*engine.Intent, *Reading) {
		in, r := read()
		if c := r.Counts()[0]; c.Until.IsZero() || !reserve(t, r) {
			t.Fatalf("%+v is known or not reserved", c)
		}
		return in, r
	}
	in, stored := reserved()
	commit(in, stored)
	_, released := reserved()
	released.Release()
	in, open := reserved()
	_, back := reserved()
	_, late := read()
	close(j.gate)
	p.k.opens.Wait()
	if reserve(t, late) {
		t.Error("an intent was reserved although the counter is known now")
	}
	want := func(n int64) {
		t.Helper()
		if _, r := read(); r.Counts()[0].N != n+1 || !r.Counts()[0].Until.IsZero() {
			t.Errorf("%+v, want %d", r.Counts()[0], n+1)
		}
	}
	want(303) // two are reserved
	commit(in, open)
	want(303)
	back.Release()
	want(302)
	p.restart(true)
	p.counted(counters, "a", 302)
}

// fullJournal refuses to keep values while it is full.
type fullJournal struct {
	storage.Journal
	full bool
}

func (j *fullJournal) Derive(ctx context.Context, d storage.Derivation) error {
	if j.full {
		return storage.ErrUnavailable
	}
	return j.Journal.Derive(ctx, d)
}

// TestKept_AfterAFailedWrite checks that nothing is forgotten after a restart if the first write after a series was
// filled has failed, such as by the end of the process, and was done again.
func TestKept_AfterAFailedWrite(t *testing.T) {
	p, counters := keptOf(t, paysInAMinute)
	journal := &fullJournal{Journal: p.store}
	p.k = New(Config{History: p.store, Journal: journal, Scrub: p.scrub})
	p.allow(counters, "a")
	journal.full = true
	if err := p.k.keeper.follow(t.Context()); err == nil {
		t.Fatal("follow = nil, want the error of the write")
	}
	journal.full = false
	must.Do(t, p.k.keeper.follow(t.Context()))
	must.Do(t, p.store.Close())
	p.open()
	in := p.intent()
	in.AgentID, in.ActionType, in.SessionID = "a", "pay", "s"
	counts := must.Get(p.k.Simulate(t.Context(), "org", counters, &engine.Input{Intent: in}, p.at))(t)
	if len(counts) != 1 || counts[0].N != 2 {
		t.Errorf("counts after a restart = %+v, want 2 with the intent itself", counts)
	}
}
