package api

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"writ.example/writ/storage"
	"writ.example/writ/storage/receipt"
)

// headAge is the least age of a listed head. Every organization can read all heads. Younger heads
// would reveal, second by second, how many decisions others make.
const headAge = time.Minute

// errEnough stops a walk through heads early.
var errEnough = errors.New("enough")

// listHeads returns the heads of all chains, one chain after the other. Within a chain the newest
// head is first. It leaves out the heads of a chain before the one that the parameter from names. A head contains
// nothing about an organization.
func (s *Server) listHeads(r *request) error {
	first := firstHeads(&r.query)
	page, err := r.onlyPage()
	if err != nil {
		return err
	}
	at, err := parseHeadCursor(page.After)
	if err == nil && at.end == 1 {
		err = storage.ErrBadCursor
	}
	if err != nil {
		return err
	}
	chains, err := s.chains(r, at.chain)
	if err != nil {
		return err
	}
	heads, next := []receipt.SignedHead(nil), ""
	for _, tip := range chains {
		if len(heads) == page.Limit {
			next = headCursor{tip.ID, 0}.String()
			break
		}
		end := at.end
		if tip.ID != at.chain {
			end = 0
		}
		low := max(1, first[tip.ID])
		some, from, err := s.chainHeads(r, tip, low, end, page.Limit-len(heads))
		if err != nil {
			return fmt.Errorf("listing heads: %w", err)
		}
		heads = append(heads, some...)
		if from > low {
			next = headCursor{tip.ID, from}.String()
			break
		}
	}
	return list(r, heads, next)
}

// chains returns the last heads of all chains, in the order of the chains' ids. It skips ids less
// than the argument from.
func (s *Server) chains(r *request, from [16]byte) (tips []receipt.Chain, err error) {
	err = s.store.Chains(r.ctx, func(tip receipt.Chain) error {
		if bytes.Compare(tip.ID[:], from[:]) >= 0 {
			tips = append(tips, tip)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading the ends of the chains: %w", err)
	}
	slices.SortFunc(tips, func(a, b receipt.Chain) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	return tips, nil
}

// chainHeads returns at most limit heads of a chain, the newest first. It begins just before the
// sequence end; an end of 0 means the newest listed head. It ends at the sequence low. The result from is the lowest
// sequence that it read.
func (s *Server) chainHeads(
	r *request, tip receipt.Chain, low, end uint64, limit int,
) (heads []receipt.SignedHead, from uint64, err error) {
	until := r.now.Add(-headAge).UnixMilli()
	if end == 0 {
		if end, err = s.firstYounger(r, tip, until); err != nil {
			return nil, 0, err
		}
	}
	from = low
	if n := uint64(limit); end > n {
		from = max(low, end-n)
	}
	err = s.store.Heads(r.ctx, tip.ID, from, func(h receipt.SignedHead) error {
		if h.Seq >= end {
			return errEnough
		}
		if h.UnixMilli <= until {
			heads = append(heads, h)
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return nil, 0, err
	}
	slices.Reverse(heads)
	return heads, from, nil
}

// headCursor is the beginning of a page: the place just before the sequence end of a chain. If end
// is 0, the page begins at the newest head of the chain.
type headCursor struct {
	chain [16]byte
	end   uint64
}

func (c headCursor) String() string { return fmt.Sprintf("%x.%d", c.chain, c.end) }

// parseHeadCursor parses the result of headCursor.String. An empty cursor is the start of the list.
func parseHeadCursor(cursor string) (c headCursor, err error) {
	if cursor == "" {
		return c, nil
	}
	chain, end, _ := strings.Cut(cursor, ".")
	c.end, err = strconv.ParseUint(end, 10, 63)
	if n, hexErr := hex.Decode(c.chain[:], []byte(chain[:min(len(chain), 32)])); err != nil || hexErr != nil ||
		n != len(c.chain) || c.String() != cursor {
		return headCursor{}, storage.ErrBadCursor
	}
	return c, nil
}

// maxFirst is the largest number of chains that the parameter from names.
const maxFirst = 64

// firstHeads takes the parameter from: the sequences from which heads are listed, by chain.
func firstHeads(q *query) map[[16]byte]uint64 {
	text, ok := q.take("from")
	if !ok {
		return nil
	}
	first := make(map[[16]byte]uint64)
	for i, part := range strings.Split(text, ",") {
		at, err := parseHeadCursor(part)
		if _, again := first[at.chain]; err != nil || at.end == 0 || again || i == maxFirst {
			q.refuse(invalid("from", "must be at most %d heads of different chains, each chain.seq, "+
				"with commas between them", maxFirst))
			return nil
		}
		first[at.chain] = at.end
	}
	return first
}

// firstYounger returns the sequence of the first head that was signed after until. If there is no
// such head, it returns the last sequence plus one. It searches by halves, which reads about twenty
// heads of a million. Heads are in the order of their times unless the clock was set back.
func (s *Server) firstYounger(r *request, tip receipt.Chain, until int64) (_ uint64, err error) {
	n := sort.Search(int(tip.Seq), func(i int) (younger bool) {
		walk := s.store.Heads(r.ctx, tip.ID, uint64(i)+1, func(h receipt.SignedHead) error {
			younger = h.UnixMilli > until
			return errEnough
		})
		if !errors.Is(walk, errEnough) {
			err = errors.Join(err, walk)
		}
		return younger
	})
	if err != nil {
		return 0, fmt.Errorf("reading heads: %w", err)
	}
	return uint64(n) + 1, nil
}
