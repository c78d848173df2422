package budget

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
	"writ.example/writ/storage"
	"writ.example/writ/storage/lease"
)

// Config configures Counters. Only History is required.
type Config struct {
	History storage.History
	// Windows holds the windows that this process counts together with other processes. It is
	// nil if this process decides alone.
	Windows storage.Windows
	// Journal keeps the counts of a process that decides alone. If it is nil, the counts are in memory only.
	Journal storage.Journal
	// Scrub has the names under which stores have agents. It is nil if that is always their key.
	Scrub Scrubber
}

// Scrubber returns the names of an agent, under every key of the scrubber. name is the agent's key, or
// one of its names in the history.
type Scrubber interface {
	// Spellings returns all names that the history may have for an agent.
	Spellings(name string) []string
	// Stored returns the names of its shared windows. Each name of an agent has one in common with
	// the key of the agent.
	Stored(name string) []string
}

// Counters keeps the counts of the rules' counters. It is safe for concurrent use.
type Counters struct {
	cfg    Config
	keeper *keeper // nil if nothing is kept

	// leases holds this process's places in shared windows. Its lock guards the fields below.
	leases *lease.Pool
	series map[seriesKey]*series
	kept   int // the windows of all series
	max    int // how many are kept at most
	// reading has the windows that are being read, and settling the changes of settlements that are being stored.
	reading  map[key]*reading
	settling map[key][]*change
	reserved map[intentKey]*reservation
	swept    int // how many windows the last sweep left

	// Series are opened until life ends.
	life  context.Context
	stop  context.CancelFunc
	opens sync.WaitGroup
}

// reading is a window that is being read, or a series that is being opened.
type reading struct {
	done    chan struct{} // closed when the read ends
	settled []*change     // settlements that ended meanwhile, and that the read may have missed
	// A series is opened in the background. early is closed when it is open, or is filled from many rows. until
	// is about when it will be open then, and err is why it is not.
	early chan struct{}
	until time.Time
	err   error
}

// series holds the windows of one counter of an organization. The key of a window is made of
// the session and the agent's key, if the counter counts by these. A line feed separates them,
// because no id contains one.
type series struct {
	counter *condition.Counter
	windows map[string]*window
	// named has the keys of windows by the other names that the history may have for their agents.
	// A settlement knows only such a name.
	named map[string]string
	// kept is the series in the journal. It is nil if it is not open. The journal must be followed before a window
	// is read from it, unless caught is behind.
	kept           *kept
	behind, caught uint64
	used           time.Time // when an intent was last counted
}

// seriesKey names a counter and the revision of the oldest rule that has the counter.
// Allowances before that revision are in the history only.
type seriesKey struct {
	org, counter string
	revision     int64
}

// key names a window.
type key struct {
	seriesKey
	of string
}

// New returns counters for cfg. They read their first counts from the history.
func New(cfg Config) *Counters {
	if cfg.Windows != nil {
		cfg.Journal = nil
	}
	k := &Counters{
		keeper: newKeeper(cfg.Journal),
		cfg:    cfg, max: maxWindows, series: make(map[seriesKey]*series), reading: make(map[key]*reading),
		settling: make(map[key][]*change), reserved: make(map[intentKey]*reservation),
		leases: lease.NewPool(cfg.Windows),
	}
	k.life, k.stop = context.WithCancel(context.Background())
	return k
}

// Reading holds the counts of counters for one intent. It is not safe for concurrent use.
type Reading struct {
	counters *Counters
	counts   []condition.Count
	cells    []cell
	intent   intentKey
	at       time.Time
	turn     condition.Turn
	reserved bool
	// own is the reservation of the intent. It is nil if there is no reservation.
	own *reservation
}

// nothing is the reading when there are no counters.
var nothing Reading

// cell is the place in a window where an intent is counted.
type cell struct {
	counter        *condition.Counter
	key            key
	agent, session string
	window         *window   // nil if the series is not open yet
	until          time.Time // when it will be about
	change         *change   // what is reserved without a window
	bucket         int64
	before, amount int64
	changes        uint32
	claim          lease.Claim // of a shared window
}

func keyOf(org string, c *condition.Counter, agent, session string) key {
	k := key{seriesKey: seriesKey{org, c.Key, c.Revision}}
	k.of = subject(c, agent, session)
	return k
}

// subject returns the text that names the agent and the session that c counts by.
func subject(c *condition.Counter, agent, session string) string {
	if !c.ByAgent {
		agent = ""
	}
	if c.BySession {
		return session + "\n" + agent
	}
	return agent
}

// Read returns the counts of counters for an intent that is decided at the given time. If Read
// returns an error, the intent must be refused. While Read reads the history, it offers the turn of
// in to others. Of in it reads the intent, the names of the agent and the turn.
func (k *Counters) Read(
	ctx context.Context, org string, counters []*condition.Counter, in *engine.Input, at time.Time,
) (*Reading, error) {
	if len(counters) == 0 {
		return &nothing, nil
	}
	r := k.cells(org, counters, in, at)
	for {
		for i := range r.cells {
			if err := k.find(ctx, &r.cells[i], at, in.Turn); err != nil {
				return nil, err
			}
		}
		if r.snapshot() {
			break
		}
	}
	r.counts = r.known(engine.Counts(counters, in.Intent, r.before))
	return r, nil
}

// known marks the counts that are not known yet.
func (r *Reading) known(counts []condition.Count) []condition.Count {
	for i := range r.cells {
		for j := range counts {
			if c := &r.cells[i]; c.window == nil && counts[j].Counter == c.counter {
				counts[j].Until = c.until
			}
		}
	}
	return counts
}

// cells returns a Reading with a cell for each counter that counts the intent.
func (k *Counters) cells(org string, counters []*condition.Counter, in *engine.Input, at time.Time) *Reading {
	r := &Reading{
		counters: k, intent: intentKey{org, in.Intent.IntentID}, at: at, turn: in.Turn,
		cells: make([]cell, 0, len(counters)),
	}
	agent, session := in.AgentNames().Key(), in.Intent.SessionID
	for _, c := range counters {
		if amount, counted := in.Intent.Counted(c); counted {
			r.cells = append(r.cells, cell{
				counter: c, key: keyOf(org, c, agent, session), agent: agent, session: session,
				bucket: bucketAt(c, at), amount: amount,
			})
		}
	}
	return r
}

// before returns the count of a counter without the intent.
func (r *Reading) before(c *condition.Counter) int64 {
	for i := range r.cells {
		if r.cells[i].counter == c {
			return r.cells[i].before
		}
	}
	return 0
}

// Counts returns the counts of all counters, with the intent included.
func (r *Reading) Counts() []condition.Count { return r.counts }

// find sets the window of a cell. If the window is not kept, find reads it. If its series is still filled from many
// rows, the cell gets no window.
func (k *Counters) find(ctx context.Context, c *cell, at time.Time, turn condition.Turn) error {
	for {
		k.leases.Lock()
		w := k.window(c.key)
		if w != nil && !w.covers(c.bucket) {
			if w.held > 0 {
				k.leases.Unlock()
				return errClock
			}
			k.forget(c.key)
			w = nil
		}
		if w != nil {
			w.expire(c.bucket)
			c.window = w
			k.series[c.key.seriesKey].used = at
			ok, err := k.refreshLocked(ctx, w, c, at, turn)
			k.leases.Unlock()
			if ok || err != nil {
				return err
			}
			continue
		}
		of := k.readsLocked(c)
		if of != c.key {
			if waits, err := k.openLocked(ctx, c, of, at, turn); waits || err != nil {
				return err
			}
			continue
		}
		r, busy := k.reading[of]
		if !busy {
			r = &reading{done: make(chan struct{})}
			k.reading[of] = r
			k.sweep(at)
			k.settle(at)
		}
		k.leases.Unlock()
		if busy {
			if err := lease.Await(ctx, turn, r.done); err != nil {
				return err
			}
			continue
		}
		err := k.readOne(ctx, c, r, at, turn)
		k.leases.Lock()
		delete(k.reading, of)
		k.leases.Unlock()
		close(r.done)
		if err != nil {
			return fmt.Errorf("reading the counters of rules: %w", err)
		}
	}
}

// errClock means that the clock was set while an intent of the window is being decided. Its amount is in no row yet,
// so the window can't be read.
var errClock = fmt.Errorf("the clock was set by more than half a window: %w", storage.ErrUnavailable)

// readOne reads the window of a cell and keeps it.
func (k *Counters) readOne(ctx context.Context, c *cell, r *reading, at time.Time, turn condition.Turn) error {
	names := k.spellings(c)
	if taken, err := k.take(ctx, c, r, names, at); taken || err != nil {
		return err
	}
	w, err := k.get(ctx, c, names, at, turn)
	if err != nil {
		return err
	}
	k.leases.Lock()
	defer k.leases.Unlock()
	k.keep(c, w, r, names, at)
	return nil
}

// window returns the window with the given key, or nil if the window is not kept.
func (k *Counters) window(of key) *window {
	s := k.series[of.seriesKey]
	if s == nil {
		return nil
	}
	if w := s.windows[of.of]; w != nil {
		return w
	}
	return s.windows[s.named[of.of]]
}

// keep adds a window that was read to the windows that are kept. names are the names of the agent in
// the history. The window gets what settlements add that the read may have missed.
func (k *Counters) keep(c *cell, w *window, r *reading, names []string, at time.Time) {
	all := subjects(c, names)
	if !slices.Contains(all, c.key.of) {
		all = append(all, c.key.of)
	}
	for _, of := range all {
		for _, ch := range k.settling[key{c.key.seriesKey, of}] { // their ends make the window stale
			w.add(ch.part, max(0, ch.n))
		}
		for _, ch := range r.settled {
			if ch.key.of == of {
				w.add(ch.part, max(0, ch.n))
				w.stale = true
			}
		}
	}
	s := k.seriesLocked(c, at)
	of := strings.Clone(c.key.of)
	s.windows[of] = w
	k.kept++
	for _, name := range names {
		if name != c.agent {
			s.named[subject(c.counter, name, c.session)] = of
		}
	}
}

// seriesLocked returns the series of a cell, which is used at the given time.
func (k *Counters) seriesLocked(c *cell, at time.Time) *series {
	s := k.series[c.key.seriesKey]
	if s == nil {
		s = &series{counter: c.counter, used: at, windows: make(map[string]*window), named: make(map[string]string)}
		k.series[seriesKey{strings.Clone(c.key.org), c.key.counter, c.key.revision}] = s
	}
	return s
}

// spellings returns all names that the history may have for the agent of a cell. It returns nil if
// the cell does not count by agent.
func (k *Counters) spellings(c *cell) []string {
	switch {
	case !c.counter.ByAgent:
		return nil
	case k.cfg.Scrub == nil:
		return []string{c.agent}
	}
	return k.cfg.Scrub.Spellings(c.agent)
}

// get reads a window from the history. If windows are shared, it begins a shared one instead.
func (k *Counters) get(
	ctx context.Context, c *cell, names []string, at time.Time, turn condition.Turn,
) (*window, error) {
	if k.cfg.Windows != nil {
		return k.begin(ctx, c, names, at, turn)
	}
	return k.read(ctx, c, names, at, turn)
}

// pageRows is how many rows of the history are read at a time.
const pageRows = 500

// read reads a window from the history. names are the names of the agent in the history.
func (k *Counters) read(
	ctx context.Context, c *cell, names []string, at time.Time, turn condition.Turn,
) (*window, error) {
	w := &window{from: bucketAt(c.counter, since(c, at)) + 1, to: math.MaxInt64}
	filter := storage.Filter{Decision: engine.Allow, AgentIDs: names, From: since(c, at)}
	for page := (storage.Page{Limit: pageRows}); ; {
		rows, next, err := k.cfg.History.ListRecords(ctx, c.key.org, filter, page)
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			amount, ok := counted(c.counter, row)
			if ok && (!c.counter.BySession || row.SessionID == c.session) {
				w.add(bucketAt(c.counter, row.DecidedAt), amount)
			}
		}
		if next == "" {
			return w, nil
		}
		page.After = next
		if turn != nil {
			turn.Yield()
		}
	}
}

// since returns the time from which rows are read for the window of c. The clock may go back a little.
func since(c *cell, at time.Time) time.Time {
	return at.Add(-c.counter.Window - (behind+2)*c.counter.Bucket())
}

// counted returns the amount that a row adds to a counter. The amount includes the row's
// settlement.
func counted(c *condition.Counter, row *storage.Record) (amount int64, ok bool) {
	amount, ok = intentOf(row).Counted(c)
	if !ok || row.Decision != engine.Allow {
		return 0, false
	}
	return amount + settled(c, row.Settlement, amount), true
}

// intentOf returns an intent with the members of a row that counters need.
func intentOf(row *storage.Record) *engine.Intent {
	return &engine.Intent{ActionType: row.ActionType, Cost: row.Cost, SessionID: row.SessionID}
}
