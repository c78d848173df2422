package decisionlog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/prometheus/client_golang/prometheus"

	"writ.example/writ/internal/telemetry"
	"writ.example/writ/storage"
	"writ.example/writ/storage/receipt"
)

// Row is a row of the history on its way to a sink.
type Row struct {
	Chain  [16]byte
	Seq    uint64 // of the head that signed it
	Record *storage.Record
	JSON   []byte // an object, without a newline
}

// Sink is a place that gets rows. Its methods are called one after the other.
type Sink interface {
	// Send sends rows in their order. It returns nil once the sink has confirmed all of them. After an
	// error the same rows are sent again. It may wait until ctx ends.
	Send(ctx context.Context, rows []Row) error
	Close() error
}

// History has the rows to send. It is a part of [storage.Log].
type History interface {
	Chains(ctx context.Context, f func(tip receipt.Chain) error) error
	Followed(ctx context.Context) ([]receipt.Chain, error)
	Rows(ctx context.Context, q storage.RowQuery, f func(storage.HeadRows) error) error
}

// Positions store how far each chain is confirmed. Package registry implements it.
type Positions interface {
	BeginSink(ctx context.Context, name string, tips []receipt.Chain) error
	Confirmed(ctx context.Context, name string, chain [16]byte) (uint64, error)
	Confirm(ctx context.Context, name string, chain [16]byte, seq uint64) error
}

// Config configures a Follower. History, Positions, Sink and Name are required.
type Config struct {
	History   History
	Positions Positions
	Sink      Sink
	// Name identifies the sink in the store. Another name is a new sink.
	Name string
	// Encode returns the JSON of a row. Nil means [Line].
	Encode func(*storage.Record) ([]byte, error)
	// Wanted reports whether the sink wants any of the rows that were committed before the call. If not,
	// the follower passes over these rows and does not read them. Nil means that the sink wants all rows.
	Wanted func(ctx context.Context) (bool, error)
	// Now is the clock. Nil means time.Now.
	Now func() time.Time
	// Log gets a line when sending begins to fail and one when it works again. Nil discards them.
	Log *slog.Logger
	// Metrics registers the follower's metrics. If it is nil, they are not registered.
	Metrics prometheus.Registerer
}

const (
	// every is the time between two looks at the chains. It is also the first pause after a failure.
	// The pause doubles with each failure up to longestPause.
	every = 250 * time.Millisecond
	// everyWanted replaces every if Config.Wanted is set, because asking the sink reads the store.
	everyWanted  = time.Second
	longestPause = 5 * time.Second
	// storeEvery is the time between two writes of positions. Each costs the store a durable write.
	storeEvery = time.Second
	// storePassed is the time between two writes of positions while the sink wants no rows.
	storePassed = 5 * time.Minute
	// batchRows and batchBytes end a batch. A batch has whole heads, so it may be longer by one.
	batchRows  = 4000
	batchBytes = 4 << 20
	// lastTime bounds how long Run sends the remaining rows after its context has ended.
	lastTime = 3 * time.Second
)

// Line returns the JSON of a row as the API shows it.
func Line(r *storage.Record) ([]byte, error) {
	return json.Marshal(r, json.FormatNilSliceAsNull(false), json.Deterministic(true))
}

// Follower sends rows to a sink. [Open] makes it.
type Follower struct {
	cfg     Config
	sent    prometheus.Counter
	removed prometheus.Counter

	// stored is when the positions were stored last. pace is the time between two writes of them. Only
	// Run uses both.
	stored time.Time
	pace   time.Duration

	mu     sync.Mutex
	chains map[[16]byte]*chain
	failed time.Time // when passes began to fail; zero if the last one did not
}

// chain is how far a chain was sent. Only Run changes confirmed and stored.
type chain struct {
	confirmed uint64 // the last head whose rows the sink has confirmed
	stored    uint64 // the position in the store
	// counted is the last head whose rows were counted. behind is the number of rows after confirmed up
	// to counted.
	counted uint64
	behind  int
	oldest  time.Time // of the first row that is not confirmed; zero if all are
}

// Open returns a follower that sends the rows that are decided after the first call with this name. If
// Open fails, it closes the sink.
func Open(ctx context.Context, cfg Config) (_ *Follower, err error) {
	if cfg.Encode == nil {
		cfg.Encode = Line
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, cfg.Sink.Close())
		}
	}()
	var tips []receipt.Chain
	err = cfg.History.Chains(ctx, func(tip receipt.Chain) error {
		tips = append(tips, tip)
		return nil
	})
	if err == nil {
		err = cfg.Positions.BeginSink(ctx, cfg.Name, tips)
	}
	if err != nil {
		return nil, fmt.Errorf("beginning the decision log: %w", err)
	}
	f := &Follower{
		cfg: cfg, chains: make(map[[16]byte]*chain),
		sent: telemetry.Counter("writ_decision_log_sent_total", "Rows that the decision log's sink has confirmed."),
		removed: telemetry.Counter("writ_decision_log_removed_total",
			"Rows that retention removed before the decision log's sink had them."),
	}
	// Positions are compared with the ends of the chains before anything more is decided: see begin.
	if _, err = f.follow(ctx); err != nil {
		return nil, err
	}
	_, err = telemetry.Register(cfg.Metrics, f.sent, f.removed,
		telemetry.GaugeFunc("writ_decision_log_lag_seconds",
			"Age of the oldest row that the decision log's sink has not confirmed; 0 if it has all.", f.lag),
		telemetry.GaugeFunc("writ_decision_log_rows_behind",
			"Rows that the decision log's sink has not confirmed, counted once a second.", f.behind))
	if err != nil {
		return nil, fmt.Errorf("registering the metrics of the decision log: %w", err)
	}
	return f, nil
}

func (f *Follower) lag() float64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	oldest := f.failed
	for _, c := range f.chains {
		if !c.oldest.IsZero() && (oldest.IsZero() || c.oldest.Before(oldest)) {
			oldest = c.oldest
		}
	}
	if oldest.IsZero() {
		return 0
	}
	return max(0, f.cfg.Now().Sub(oldest).Seconds())
}

func (f *Follower) behind() (n float64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.chains {
		n += float64(c.behind)
	}
	return n
}

// Run sends rows until ctx ends. Then it sends the remaining rows, for at most lastTime, stores the
// positions and closes the sink. The store must stay open until Run returns.
func (f *Follower) Run(ctx context.Context) {
	var counting sync.WaitGroup
	if f.cfg.Metrics != nil {
		counting.Go(func() { f.count(ctx) })
	}
	defer counting.Wait()
	failures, first := 0, every
	if f.cfg.Wanted != nil {
		first = everyWanted
	}
	for {
		err := f.pass(ctx)
		if ctx.Err() != nil {
			break
		}
		f.note(err, &failures)
		pause := min(first<<min(failures, 8), longestPause)
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastTime)
	defer cancel()
	f.stored = time.Time{}
	if err := errors.Join(f.pass(last), f.cfg.Sink.Close()); err != nil {
		f.cfg.Log.Error("the decision log could not be finished: its rows are sent after the next start",
			"sink", f.cfg.Name, "error", err)
	}
}

// note logs the first failure and the next success.
func (f *Follower) note(err error, failures *int) {
	switch {
	case err == nil && *failures > 0:
		f.cfg.Log.Info("rows are sent to the decision log again", "sink", f.cfg.Name, "failures", *failures)
		*failures = 0
	case err != nil:
		if *failures++; *failures == 1 {
			f.cfg.Log.Error("rows cannot be sent to the decision log: they wait in the history", "sink", f.cfg.Name,
				"error", err)
		}
	}
}

// pass sends the rows of all chains that this process follows. In each round a chain sends one batch. No
// round begins after an error.
func (f *Follower) pass(ctx context.Context) error {
	tips, err := f.follow(ctx)
	if err == nil {
		err = f.passOver(ctx, tips)
	}
	for more := err == nil; more && err == nil; {
		more = false
		for _, tip := range tips {
			c := f.chains[tip.ID]
			if c.confirmed >= tip.Seq {
				continue
			}
			sent, e := f.send(ctx, tip, c)
			more, err = more || sent, errors.Join(err, e)
			err = errors.Join(err, f.store(ctx))
		}
	}
	err = errors.Join(err, f.store(ctx))
	f.set(func() {
		if err == nil {
			f.failed = time.Time{}
		} else if f.failed.IsZero() {
			f.failed = f.cfg.Now()
		}
	})
	return err
}

// follow returns the ends of the chains that this process follows, and reads the positions of new ones.
func (f *Follower) follow(ctx context.Context) ([]receipt.Chain, error) {
	tips, err := f.cfg.History.Followed(ctx)
	if err != nil {
		err = fmt.Errorf("reading the ends of the chains: %w", err)
	}
	chains := make(map[[16]byte]*chain, len(tips))
	for _, tip := range tips {
		c := f.chains[tip.ID]
		if c == nil && err == nil {
			c, err = f.begin(ctx, tip)
		}
		chains[tip.ID] = c
	}
	if err == nil {
		f.set(func() { f.chains = chains })
	}
	return tips, err
}

// begin returns the stored position of a chain. If the store has lost heads, the position is beyond the end
// of the chain. Later heads will get the lost sequences, so the position moves back to the end.
func (f *Follower) begin(ctx context.Context, tip receipt.Chain) (*chain, error) {
	at, err := f.cfg.Positions.Confirmed(ctx, f.cfg.Name, tip.ID)
	if err != nil {
		return nil, fmt.Errorf("reading the position of the decision log: %w", err)
	}
	now := min(at, tip.Seq)
	return &chain{confirmed: now, stored: at, counted: now}, nil
}

// passOver moves the chains to their ends if the sink does not want what is there.
func (f *Follower) passOver(ctx context.Context, tips []receipt.Chain) error {
	f.pace = storeEvery
	behind := slices.ContainsFunc(tips, func(tip receipt.Chain) bool { return f.chains[tip.ID].confirmed < tip.Seq })
	if f.cfg.Wanted == nil || !behind {
		return nil
	}
	wanted, err := f.cfg.Wanted(ctx)
	if err != nil || wanted {
		return err
	}
	f.pace = storePassed
	f.set(func() {
		for _, tip := range tips {
			c := f.chains[tip.ID]
			c.confirmed, c.counted = max(c.confirmed, tip.Seq), max(c.counted, tip.Seq)
			c.behind, c.oldest = 0, time.Time{}
		}
	})
	return nil
}

// errFull ends the reading of a batch.
var errFull = errors.New("the batch is full")

// send sends the next batch of a chain. It returns false if the chain has no further durable rows.
func (f *Follower) send(ctx context.Context, tip receipt.Chain, c *chain) (more bool, err error) {
	var rows []Row
	var heads []storage.HeadRows // without their records
	size, lost := 0, 0
	err = f.cfg.History.Rows(ctx, storage.RowQuery{Chain: tip.ID, From: c.confirmed + 1},
		func(head storage.HeadRows) error {
			for _, r := range head.Records {
				text, err := f.cfg.Encode(r)
				if err != nil {
					return fmt.Errorf("encoding decision %s: %w", r.DecisionID, err)
				}
				rows, size = append(rows, Row{tip.ID, head.Seq, r, text}), size+len(text)
			}
			lost += head.Count - len(head.Records)
			head.Records = nil
			heads = append(heads, head)
			if len(rows) >= batchRows || size >= batchBytes || head.Seq >= tip.Seq {
				return errFull
			}
			return nil
		})
	if err != nil && !errors.Is(err, errFull) {
		return false, fmt.Errorf("reading rows: %w", err)
	}
	if len(heads) == 0 {
		return false, nil
	}
	if len(rows) > 0 {
		f.set(func() { c.oldest = rows[0].Record.DecidedAt })
		if err := f.cfg.Sink.Send(ctx, rows); err != nil {
			return false, fmt.Errorf("sending rows: %w", err)
		}
	}
	f.sent.Add(float64(len(rows)))
	f.removed.Add(float64(lost))
	f.set(func() { c.confirm(heads, tip.Seq) })
	return true, nil
}

func (f *Follower) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// confirm moves c to the last of heads. end is the end of the chain.
func (c *chain) confirm(heads []storage.HeadRows, end uint64) {
	for _, head := range heads {
		c.confirmed = head.Seq
		if head.Seq <= c.counted {
			c.behind -= head.Count
		}
	}
	c.counted = max(c.counted, c.confirmed)
	if c.confirmed >= end {
		c.oldest = time.Time{}
	}
}

// store stores the positions that have changed, unless it stored positions less than f.pace ago.
func (f *Follower) store(ctx context.Context) error {
	now := f.cfg.Now()
	if d := now.Sub(f.stored); d >= 0 && d < f.pace {
		return nil
	}
	for id, c := range f.chains {
		if c.stored == c.confirmed {
			continue
		}
		if err := f.cfg.Positions.Confirm(ctx, f.cfg.Name, id, c.confirmed); err != nil {
			return fmt.Errorf("storing the position of the decision log: %w", err)
		}
		c.stored, f.stored = c.confirmed, now
	}
	return nil
}

// count counts the rows that are behind, once a second. It reads a row at most once. It ignores errors,
// because pass meets and reports the same ones.
func (f *Follower) count(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for id, from := range f.uncounted() {
			q := storage.RowQuery{Chain: id, From: from, Bare: true}
			//nolint:errcheck // see above
			f.cfg.History.Rows(ctx, q, func(head storage.HeadRows) error {
				f.set(func() { f.chains[id].count(&head) })
				return nil
			})
		}
	}
}

// count counts the next head of c. c is nil if its chain is no longer followed.
func (c *chain) count(head *storage.HeadRows) {
	if c != nil && head.Seq == c.counted+1 {
		c.counted, c.behind = head.Seq, c.behind+head.Count
	}
}

// uncounted returns the first uncounted head of each chain.
func (f *Follower) uncounted() map[[16]byte]uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	from := make(map[[16]byte]uint64, len(f.chains))
	for id, c := range f.chains {
		from[id] = c.counted + 1
	}
	return from
}
