package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

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
	chain [16]byte // of the directory; Chains sets it

	orgs map[string]*orgRows // Tombstones and Parts fill it
	// months has the meters of removed rows, and older the rows removed without a
	// tombstone. Tombstones sets both.
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
	led     pairs  // of the intents, without those of removed rows

	mu     sync.Mutex
	kept   pairs                   // of the rows that retention has not reached
	rest   int                     // existing rows with an id that is not greater than removed
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
	if r.s, err = openReadOnly(dir, filesystem, r.lock); err != nil {
		return err
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
		err = errors.Join(r.s.health.stopped(), r.s.closeFiles())
	}
	return errors.Join(err, r.lock.Close())
}

// Chains calls f with the end of the directory's one chain, if it has heads.
func (r *Reader) Chains(ctx context.Context, f func(receipt.Chain) error) (err error) {
	defer readPanic(&err)
	found, end := false, receipt.Chain{}
	prefix := key{byte(kindHead)}
	err = r.s.scanBack(ctx, prefix, prefix.end(), func(k, v []byte) (bool, error) {
		h, err := r.headAt(k, v)
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
		h, err := r.headAt(k, v)
		if err != nil {
			return true, err
		}
		return false, f(h)
	})
}

// headAt reads the head under a key.
func (r *Reader) headAt(k, v []byte) (h receipt.SignedHead, err error) {
	seq, ok := headSeq(k)
	if !ok {
		return h, &storage.BreakError{Err: fmt.Errorf("the key of a head has %d bytes", len(k))}
	}
	if h, err = r.s.headOf(v); err != nil {
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

// position splits a key of an organization.
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
	rows := &orgRows{months: make(map[storage.Month]int64)}
	r.orgs[org] = rows
	return rows, nil
}
