package protocol

import (
	"bytes"
	"slices"
)

// keys computes the keys of states. States that differ only in the names of replicas, intents,
// chains and decisions have the same key. Their later states also differ only in names.
type keys struct {
	replicas, intents [][]int // all orders of the replicas and of the intents
	best, buf         []byte
}

func newKeys(w *World) *keys { return &keys{replicas: orders(w.Replicas), intents: orders(w.Intents)} }

// orders returns every order of the numbers below n.
func orders(n int) [][]int {
	if n == 0 {
		return [][]int{nil}
	}
	var all [][]int
	for _, o := range orders(n - 1) {
		for i := range n {
			all = append(all, slices.Insert(slices.Clone(o), i, n-1))
		}
	}
	return all
}

// of returns the key of s. The key is valid until the next call.
func (k *keys) of(s *state) []byte {
	k.best = k.best[:0]
	for _, replicas := range k.replicas {
		for _, intents := range k.intents {
			k.buf = s.encode(k.buf[:0], replicas, intents)
			if len(k.best) == 0 || bytes.Compare(k.buf, k.best) < 0 {
				k.best, k.buf = k.buf, k.best
			}
		}
	}
	return k.best
}

func flags(all ...bool) (b byte) {
	for _, f := range all {
		if b <<= 1; f {
			b |= 1
		}
	}
	return b
}

// encode appends s with its replicas and intents in the given orders. Chains are in the order in
// which replicas name them. After them come the other chains, in the order of their heads.
func (s *state) encode(buf []byte, replicas, intents []int) []byte {
	var names [16]byte // new numbers of chains, from one
	var named [16]int8
	chains := named[:0]
	name := func(c int8) byte {
		if c < 0 {
			return 0
		}
		if names[c] == 0 {
			chains = append(chains, c)
			names[c] = byte(len(chains))
		}
		return names[c]
	}
	var place [16]byte // new numbers of replicas, from one
	for n, p := range replicas {
		place[p] = byte(n + 1)
		r := &s.replicas[p]
		buf = append(buf, flags(r.up, r.refused, r.pending, r.sure, r.gone, r.heard, r.fresh, r.passed),
			flags(r.before, r.ahead, r.named), name(r.chain), byte(r.phase), r.places, byte(s.given[p]))
		if r.sure || r.phase == open || r.pending {
			buf = append(buf, byte(r.tip+1), byte((r.tip+1)>>8))
		} else {
			buf = append(buf, 0, 0)
		}
	}
	rest := len(chains)
	for c := range s.holders {
		name(int8(c))
	}
	slices.SortFunc(chains[rest:], func(a, b int8) int {
		return int(s.applied.heads[a])<<16 + int(s.durable.heads[a]) -
			int(s.applied.heads[b])<<16 - int(s.durable.heads[b])
	})
	for _, c := range chains {
		holder := byte(0)
		if h := s.holders[c]; h >= 0 {
			holder = place[h]
		} else if h < free {
			holder = 1<<7 | place[-2-h]
		}
		a, d := s.applied.heads[c], s.durable.heads[c]
		buf = append(buf, holder, byte(a), byte(a>>8), byte(d), byte(d>>8))
	}
	buf = append(buf, flags(s.flipped, s.answered, s.old, s.restored), byte(s.counted))
	for _, i := range intents {
		var known [16]uint16
		ids := known[:0]
		put := func(d *decision) {
			n := 0
			if d.id != 0 {
				if n = slices.Index(ids, d.id) + 1; n == 0 {
					ids = append(ids, d.id)
					n = len(ids)
				}
			}
			uncounted := byte(0)
			if d.uncounted > 0 {
				uncounted = place[d.uncounted-1]
			}
			buf = append(buf, byte(n)<<4|flags(d.allow, d.late, d.place, d.fresh), uncounted)
		}
		put(&decision{id: s.acked[i]})
		put(&s.durable.rows[i])
		put(&s.applied.rows[i])
		for _, p := range replicas {
			put(&s.replicas[p].batch[i])
		}
	}
	return buf
}
