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

	"writ/storage"
	"writ/storage/receipt"
)

// headAge is the age at which a head is listed. Every organization sees all heads: from
// younger ones it could watch, second by second, how much others decide.
const headAge = time.Minute

// errEnough ends a walk through heads.
var errEnough = errors.New("enough")

// listHeads returns the heads of every chain, one chain after the other, the newest of a chain
// first. They say nothing about an organization.
func (s *Server) listHeads(r *request) error {
	page, err := r.onlyPage()
	if err != nil {
		return err
	}
	at, err := parseHeadCursor(page.After)
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
		some, from, err := s.chainHeads(r, tip, end, page.Limit-len(heads))
		if err != nil {
			return fmt.Errorf("listing heads: %w", err)
		}
		heads = append(heads, some...)
		if from > 1 {
			next = headCursor{tip.ID, from}.String()
			break
		}
	}
	return list(r, heads, next)
}

// chains returns the ends of the chains from one on, in order of their ids.
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

// chainHeads returns the last heads before end, at most limit, the newest first, and the
// sequence of the first that it looked at. An end of 0 means the newest head that is listed.
func (s *Server) chainHeads(
	r *request, tip receipt.Chain, end uint64, limit int,
) (heads []receipt.SignedHead, from uint64, err error) {
	until := r.now.Add(-headAge).UnixMilli()
	if end == 0 {
		if end, err = s.firstYounger(r, tip, until); err != nil {
			return nil, 0, err
		}
	}
	from = 1
	if n := uint64(limit); end > n {
		from = end - n
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

// headCursor is the place where a page goes on: before the sequence end of a chain, or at its
// newest head if end is 0.
type headCursor struct {
	chain [16]byte
	end   uint64
}

func (c headCursor) String() string { return fmt.Sprintf("%x.%d", c.chain, c.end) }

// parseHeadCursor returns what String has written, and the start for none.
func parseHeadCursor(cursor string) (c headCursor, err error) {
	if cursor == "" {
		return c, nil
	}
	chain, end, _ := strings.Cut(cursor, ".")
	c.end, err = strconv.ParseUint(end, 10, 63)
	if n, hexErr := hex.Decode(c.chain[:], []byte(chain[:min(len(chain), 32)])); err != nil || hexErr != nil ||
		n != len(c.chain) ||
		c.end == 1 || c.String() != cursor {
		return headCursor{}, storage.ErrBadCursor
	}
	return c, nil
}

// firstYounger returns the sequence of the first head that was signed after a time, or one
// more than the last sequence. It reads some twenty heads of a million, because heads are in
// order of time unless the clock is set back.
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
