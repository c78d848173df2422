package storagetest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"writ.example/writ/storage"
)

type memoryWindows struct {
	mu    sync.Mutex
	kept  []*memoryWindow
	begun int
}

type memoryWindow struct {
	org, counter string
	of           []string

	begun string
	parts []storage.WindowPart
}

// named returns the stored window with the name of w, or nil.
func (m *memoryWindows) named(w *storage.Window) *memoryWindow {
	for _, kept := range m.kept {
		if kept.org == w.Org && kept.counter == w.Counter &&
			slices.ContainsFunc(w.Of, func(of string) bool { return slices.Contains(kept.of, of) }) {
			return kept
		}
	}
	return nil
}

// Windows implements storage.Quotas.
func (h *Handle) Windows() storage.Windows { return h }

// Begin implements storage.Windows.
func (h *Handle) Begin(ctx context.Context, w storage.Window, parts []storage.WindowPart) error {
	all := &h.m.windows
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.named(&w) == nil {
		all.begun++
		all.kept = append(all.kept, &memoryWindow{
			org: w.Org, counter: w.Counter, of: slices.Clone(w.Of), begun: fmt.Sprint(all.begun), parts: slices.Clone(parts),
		})
	}
	return ctx.Err()
}

func (h *Handle) countWindow(ctx context.Context, w storage.Window, ask storage.Ask) (storage.Granted, error) {
	all := &h.m.windows
	all.mu.Lock()
	defer all.mu.Unlock()
	h.m.counts.Add(1)
	if err := ctx.Err(); err != nil {
		return storage.Granted{}, err
	}
	kept := all.named(&w)
	now := w.At(h.m.clock())
	if kept == nil || ask.Begun != "" && ask.Begun != kept.begun {
		return storage.Granted{}, storage.ErrNotFound
	}
	if ask.Want > 0 || len(ask.Back) > 0 {
		kept.of = slices.Compact(slices.Sorted(slices.Values(slices.Concat(kept.of, w.Of))))
	}
	low := min(ask.At, now) - w.Parts - 1
	kept.parts = slices.DeleteFunc(kept.parts, func(p storage.WindowPart) bool { return p.At < low })
	got := storage.Granted{At: max(ask.At, now), Begun: kept.begun}
	for i := range kept.parts {
		p := &kept.parts[i]
		for _, back := range ask.Back {
			if back.At == p.At {
				p.N = max(0, p.N-back.N)
			}
		}
		got.Total += p.N
	}
	if left := ask.Limit - got.Total; ask.Want > 0 && left >= ask.Need {
		got.N = max(ask.Need, min(ask.Want, left/16))
		got.Total += got.N
		if i := slices.IndexFunc(kept.parts, func(p storage.WindowPart) bool { return p.At == got.At }); i >= 0 {
			kept.parts[i].N += got.N
		} else {
			kept.parts = append(kept.parts, storage.WindowPart{At: got.At, N: got.N})
		}
	}
	return got, nil
}

// SetClock replaces time.Now as the clock of the store's windows.
func (m *Memory) SetClock(now func() time.Time) {
	m.windows.mu.Lock()
	defer m.windows.mu.Unlock()
	m.now = now
}

func (m *Memory) clock() time.Time {
	if m.now == nil {
		return time.Now()
	}
	return m.now()
}

// Counts returns how often handles have called Count for a window.
func (m *Memory) Counts() int64 { return m.counts.Load() }

// ForgetWindows deletes all windows. Any store may delete a window whose counts have all expired.
func (m *Memory) ForgetWindows() {
	m.windows.mu.Lock()
	defer m.windows.mu.Unlock()
	m.windows.kept = nil
}
