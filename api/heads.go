package api

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"time"

	"writ/ledger/receipt"
	"writ/storage"
)

// headAge is how old a head is before it is listed. Heads are everybody's: by
// younger ones an organization could watch, second by second, how much others
// decide.
const headAge = time.Minute

// errEnough ends a walk through heads.
var errEnough = errors.New("enough")

// listHeads returns the heads of the chain, newest first. They hold nothing of
// an organization's.
func (s *Server) listHeads(r *request) (response, error) {
	page, err := r.onlyPage()
	if err != nil {
		return response{}, err
	}
	until := r.now.Add(-headAge).UnixMilli()
	tip, err := s.cfg.Store.Tip(r.ctx)
	if err != nil {
		return response{}, fmt.Errorf("reading the end of the chain: %w", err)
	}
	end, err := parseHeadCursor(page.After)
	if err == nil && end == 0 {
		end, err = s.firstYounger(r, tip, until)
	}
	if err != nil {
		return response{}, err
	}
	from := uint64(1)
	if n := uint64(page.Limit); end > n {
		from = end - n
	}
	var heads []receipt.SignedHead
	err = s.cfg.Store.Heads(r.ctx, tip.ID, from, func(h receipt.SignedHead) error {
		if h.Seq >= end {
			return errEnough
		}
		if h.UnixMilli <= until {
			heads = append(heads, h)
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return response{}, fmt.Errorf("listing heads: %w", err)
	}
	slices.Reverse(heads)
	next := ""
	if from > 1 {
		next = strconv.FormatUint(from, 10)
	}
	return list(heads, next), nil
}

// parseHeadCursor returns the sequence that a page ends before, 0 for the first
// page.
func parseHeadCursor(cursor string) (uint64, error) {
	if cursor == "" {
		return 0, nil
	}
	seq, err := strconv.ParseUint(cursor, 10, 63)
	if err != nil || seq < 2 || strconv.FormatUint(seq, 10) != cursor {
		return 0, storage.ErrBadCursor
	}
	return seq, nil
}

// firstYounger returns the sequence of the first head that was signed after a
// time, which is one more than the last head's if none was. It takes a look at
// some twenty of a million: heads are in order of time as long as the clock is
// not set back.
func (s *Server) firstYounger(r *request, tip receipt.Chain, until int64) (_ uint64, err error) {
	n := sort.Search(int(tip.Seq), func(i int) (younger bool) {
		walk := s.cfg.Store.Heads(r.ctx, tip.ID, uint64(i)+1, func(h receipt.SignedHead) error {
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
