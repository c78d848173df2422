package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/uuid"

	"writ/engine"
	"writ/ledger/receipt"
	"writ/storage"
)

// Reader reads a whole history to prove it: the heads, the rows, the documents, their
// indexes and the meters. It checks that these agree with one another. Whether the rows are
// those that were signed is for its caller to verify.
//
// Reading changes nothing in or beside the directory. After a crash the log is read into
// memory. The store cannot be opened while a Reader is open.
type Reader struct {
	s     *Store
	lock  *pebble.Lock
	found inspection
	noted tip
	// hasDocuments reports whether the store has a format whose documents are read.
	hasDocuments bool
	chain        [16]byte // the one of the directory, as Chains found it

	orgs map[string]*orgRows // as Tombstones and Parts found them
	// months has the meters of removed rows, and older the rows removed without a
	// tombstone, as Tombstones found them.
	months meterTable
	older  storage.Census
	seed   maphash.Seed // of pairs
	most   int          // rows of a part
}

// pairs is a multiset of pairs of an intent and its decision, as a sum of hashes under a
// random seed. Comparing the sums of rows and of intents takes one pass over each, where
// looking up every intent would take a random read. It misses a difference with a
// probability of 2^-64.
type pairs struct {
	n   int
	sum uint64
}

func (p *pairs) add(seed maphash.Seed, intent string, id []byte) {
	var h maphash.Hash
	h.SetSeed(seed)
	h.Write(id)
	h.WriteString(intent)
	p.n++
	p.sum += h.Sum64()
}

// orgRows are totals of an organization's rows.
type orgRows struct {
	removed []byte // the greatest id that was removed without a tombstone, nil for none
	led     pairs  // that the intents lead to, but for removed rows

	mu     sync.Mutex
	kept   pairs                   // of the rows that retention has not reached
	rest   int                     // rows whose id is no greater than removed, yet are there
	months map[storage.Month]int64 // of the rows that are kept
}

// partRows is the most rows of a part: enough that the cost of its iterators is
// negligible.
const partRows = 4096

// OpenReader opens the store in dir, which must not be open: not in this process either,
// because OpenReader would release its lock. Of o it uses FS. Its error is a
// *storage.BreakError if dir has lost files since its store was closed, otherwise it says
// why dir cannot be read.
func OpenReader(dir string, o Options) (_ *Reader, err error) {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	filesystem := readOnlyFS{o.FS}
	if err := checkShutdownManifest(dir, filesystem); errors.Is(err, errDamaged) {
		return nil, &storage.BreakError{Err: fmt.Errorf("%s: %w", dir, err)}
	} else if err != nil {
		return nil, fmt.Errorf("reading %s: %w", dir, err)
	}
	lock, err := lockDir(dir, filesystem)
	if err != nil {
		return nil, err
	}
	r := &Reader{lock: lock, orgs: make(map[string]*orgRows), months: make(meterTable), seed: maphash.MakeSeed(), most: partRows}
	if err := r.open(dir, filesystem); err != nil {
		return nil, fmt.Errorf("reading %s: %w", dir, errors.Join(err, r.Close()))
	}
	return r, nil
}

func (r *Reader) open(dir string, filesystem vfs.FS) (err error) {
	defer readPanic(&err)
	if r.s, err = openReadOnly(dir, filesystem, r.lock); errors.Is(err, pebble.ErrDBDoesNotExist) {
		return errors.New("there is no store")
	} else if err != nil {
		return err
	}
	v, err := r.s.get(formatKey)
	if errors.Is(err, storage.ErrNotFound) {
		return errors.New("there is no store of writ's")
	}
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(string(v))
	if err != nil || n > format {
		return fmt.Errorf("its format is %.16q, this writ knows %d", v, format)
	}
	r.found.linked, r.hasDocuments = n >= linkedFormat, n >= documentFormat
	if !r.found.linked {
		return nil
	}
	switch r.noted, err = readTip(dir, filesystem); {
	case errors.Is(err, errNoTip), errors.Is(err, errDamagedTip):
		r.found.because("%s, which notes how far the store has come, %v", tipName(dir), err)
		return nil
	default:
		return err
	}
}

// Close releases the directory.
func (r *Reader) Close() error {
	var err error
	if r.s != nil {
		err = errors.Join(r.s.health.stopped(), r.s.db.Close())
	}
	return errors.Join(err, r.lock.Close())
}

// Chains calls f with the end of the directory's one chain, if it has heads.
func (r *Reader) Chains(ctx context.Context, f func(receipt.Chain) error) (err error) {
	defer readPanic(&err)
	found, end := false, receipt.Chain{}
	prefix := key{byte(kindHead)}
	err = r.s.scanBack(ctx, prefix, prefix.end(), func(k, v []byte) (bool, error) {
		h, err := headAt(k, v)
		found, end = true, receipt.Chain{ID: h.Chain}.Next(h.Head)
		return true, err
	})
	if !found || err != nil {
		return err
	}
	r.chain = end.ID
	return f(end)
}

// Heads calls f for each stored head from a sequence on, in order, including heads of
// another chain, which do not belong into the directory. A head that cannot be read or does
// not match its key is a *storage.BreakError.
func (r *Reader) Heads(ctx context.Context, _ [16]byte, from uint64, f func(receipt.SignedHead) error) (err error) {
	defer readPanic(&err)
	return r.s.scan(ctx, headKey(from), key{byte(kindHead)}.end(), func(k, v []byte) (bool, error) {
		h, err := headAt(k, v)
		if err != nil {
			return true, err
		}
		return false, f(h)
	})
}

// headAt reads the head under a key.
func headAt(k, v []byte) (h receipt.SignedHead, err error) {
	seq, ok := headSeq(k)
	if !ok {
		return h, &storage.BreakError{Err: fmt.Errorf("the key of a head has %d bytes", len(k))}
	}
	if err := h.UnmarshalBinary(v); err != nil {
		return h, &storage.BreakError{Head: seq, Err: err}
	}
	if h.Seq != seq {
		return h, &storage.BreakError{Head: seq, Err: fmt.Errorf("head %d is in its place", h.Seq)}
	}
	return h, nil
}

// Parts divides the rows by reading their keys. All parts must be read before Census is
// called; they can be read concurrently.
func (r *Reader) Parts(ctx context.Context) (parts []storage.Part, err error) {
	defer readPanic(&err)
	it, err := r.s.newIter(&pebble.IterOptions{LowerBound: key{byte(kindRecord)}, UpperBound: key{byte(kindRecord) + 1}})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	var (
		last *part
		n    int
	)
	for ok := it.First(); ok; ok = it.Next() {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		org, rest, err := position(it.Key())
		if err != nil {
			return nil, err
		}
		if _, settlement, err := parsePosition(rest); last != nil && last.org == string(org) {
			if n++; n <= r.most || settlement && err == nil {
				continue
			}
		}
		next := &part{r: r, org: string(org)}
		if last != nil && last.org == next.org {
			next.from, next.rows = bytes.Clone(rest), last.rows
			last.to = next.from
		} else if next.rows, err = r.org(next.org); err != nil {
			return nil, err
		}
		parts, last, n = append(parts, next.read), next, 1
	}
	return parts, it.Error()
}

// position splits the key of something of an organization.
func position(k []byte) (org, rest []byte, err error) {
	n, err := orgLen(k)
	if err != nil {
		return nil, nil, &storage.BreakError{Err: err}
	}
	return k[3 : 3+n], k[3+n:], nil
}

// org returns the totals of an organization.
func (r *Reader) org(org string) (*orgRows, error) {
	if known := r.orgs[org]; known != nil {
		return known, nil
	}
	removed, err := r.s.get(removedKey(org))
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return nil, err
	}
	rows := &orgRows{removed: removed, months: make(map[storage.Month]int64)}
	r.orgs[org] = rows
	return rows, nil
}

// Census compares the rows that all parts have read with the rest of the store: intents and
// index entries that lead nowhere, the meters, the documents, and the tip. Its error is a
// *storage.BreakError or a failure to read.
func (r *Reader) Census(ctx context.Context) (c storage.Census, err error) {
	defer readPanic(&err)
	c = r.older
	for _, rows := range r.orgs {
		if rows.kept.n+rows.rest > 0 {
			c.Organizations++
		}
		c.Unmarked -= rows.rest
	}
	if err := r.strays(ctx); err != nil {
		return c, err
	}
	for _, org := range slices.Sorted(maps.Keys(r.orgs)) {
		rows := r.orgs[org]
		if rows.led != rows.kept {
			return c, r.misled(ctx, org, rows)
		}
		for month, n := range rows.months {
			r.months.add(org, month, n, 0)
		}
	}
	if err := r.meters(ctx, r.months); err != nil {
		return c, err
	}
	if err := r.documents(ctx); err != nil {
		return c, err
	}
	if err := r.found.compare(r.s, r.noted); err != nil {
		return c, err
	}
	switch {
	case r.found.tip.Head < r.noted.Head:
		r.found.because("it ends at head %d, and %s notes head %d", r.found.tip.Head, tipName(r.s.health.dir), r.noted.Head)
	case r.found.linked && r.found.tip.Change < r.noted.Change:
		r.found.because("its documents end at change %d, and %s notes change %d", r.found.tip.Change, tipName(r.s.health.dir), r.noted.Change)
	}
	if len(r.found.reasons) > 0 {
		return c, &storage.BreakError{Err: fmt.Errorf("the store: %s", strings.Join(r.found.reasons, "; "))}
	}
	return c, nil
}

// strays finds index entries that no part has read: those of an organization without rows
// or of no decision.
func (r *Reader) strays(ctx context.Context) error {
	prefix := key{byte(kindByDecision)}
	return r.s.scan(ctx, prefix, prefix.end(), func(k, _ []byte) (bool, error) {
		org, rest, err := position(k)
		if err != nil {
			return true, err
		}
		if rows := r.orgs[string(org)]; rows != nil && rows.kept.n+rows.rest > 0 &&
			len(rest) == 1+idLen && rest[0] >= byte(engine.Allow) && rest[0] <= byte(engine.Deny) {
			return false, nil
		}
		id, _ := uuid.FromBytes(rest[min(1, len(rest)):]) // zeros where it is none
		return true, broken(string(org), id, "it is found by its decision, and no such row is there")
	})
}

// misled returns the first row of org that its intent does not lead to, or the first intent
// that does not lead to its row.
func (r *Reader) misled(ctx context.Context, org string, rows *orgRows) error {
	prefix := orgKey(kindRecord, org)
	err := r.s.scan(ctx, prefix, prefix.end(), func(k, v []byte) (bool, error) {
		id, settlement, err := parsePosition(k[len(prefix):])
		if settlement || err != nil {
			return err != nil, err
		}
		row, err := parseRecord(org, id, v, nil)
		if err != nil {
			return true, err
		}
		return false, r.leads(row, id)
	})
	if err != nil {
		return err
	}
	prefix = orgKey(kindIntent, org)
	err = r.s.scan(ctx, prefix, prefix.end(), func(k, v []byte) (bool, error) {
		name := k[len(prefix):]
		id, left, _, err := parseIntent(v, r.chain)
		if err != nil {
			return true, err
		}
		if len(left) > 0 || bytes.Compare(id[:], rows.removed) <= 0 {
			return false, nil
		}
		row, err := r.s.record(org, id)
		switch {
		case errors.Is(err, storage.ErrNotFound):
			return true, broken(org, id, "its intent %q is decided, and its row is not there", name)
		case err != nil:
			return true, err
		case row.IntentID != string(name):
			return true, broken(org, id, "intent %q leads to it, and it is of intent %q", name, row.IntentID)
		}
		return false, nil
	})
	if err != nil {
		return err
	}
	return &storage.BreakError{OrganizationID: org, Err: errors.New("its intents are not those of its rows")}
}

// leads returns nil if the intent of row, whose decision is id, leads to it.
func (r *Reader) leads(row *storage.Record, id uuid.UUID) error {
	switch v, err := r.s.get(orgKey(kindIntent, row.OrganizationID).text(row.IntentID)); {
	case errors.Is(err, storage.ErrNotFound):
		return broken(row.OrganizationID, id, "its intent %q is not among the intents that are decided", row.IntentID)
	case err != nil:
		return err
	case !bytes.Equal(v, id[:]):
		return broken(row.OrganizationID, id, "its intent %q leads to another decision", row.IntentID)
	}
	return nil
}
