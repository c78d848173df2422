package embedded

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sync"

	"writ.example/writ/storage/embedded/segment"
	"writ.example/writ/storage/receipt"
)

// frame is a decoded frame of the history.
type frame struct {
	number uint64
	// headed is the number of the last frame with a head, up to this frame. If headed equals
	// number, this frame has a head.
	headed uint64
	head   receipt.SignedHead
	items  [][]byte

	once sync.Once
	sigs []string
	err  error
}

// sig returns the signature of item index, and the id of the key that made the signature.
func (f *frame) sig(index uint32) (receipt.Inclusion, error) {
	f.once.Do(func() {
		leaves := make([][32]byte, len(f.items))
		if f.err = f.each(func(i int, it *item) (err error) {
			leaves[i], err = it.leaf(f.head.KeyID)
			return err
		}); f.err == nil {
			f.sigs, f.err = f.head.Sigs(leaves)
		}
	})
	if f.err != nil {
		return receipt.Inclusion{}, fmt.Errorf("%w: frame %d: %w", errCorrupt, f.number, f.err)
	}
	return receipt.Inclusion{Sig: f.sigs[index], KeyID: f.head.KeyID}, nil
}

// signed is the text of sig for a caller that has the leaves of all items.
func (f *frame) signed(leaves [][32]byte, index int) (string, error) {
	f.once.Do(func() { f.sigs, f.err = f.head.Sigs(leaves) })
	if f.err != nil {
		return "", fmt.Errorf("%w: frame %d: %w", errCorrupt, f.number, f.err)
	}
	return f.sigs[index], nil
}

func (f *frame) imported() bool { return f.headed != f.number }

// each calls do for each item.
func (f *frame) each(do func(i int, it *item) error) error {
	for i, b := range f.items {
		it, err := parseItem(b)
		if err == nil {
			err = do(i, &it)
		}
		if err != nil {
			return fmt.Errorf("item %d: %w", i, err)
		}
	}
	return nil
}

// decodedFrames is how many frames a store keeps decoded. A page of records often reads
// several items of one frame.
const decodedFrames = 16

// frames caches the frames that were read last.
type frames struct {
	mu   sync.Mutex
	last []*frame
}

func (c *frames) get(number uint64) *frame {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range c.last {
		if f.number == number {
			return f
		}
	}
	return nil
}

func (c *frames) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = nil
}

func (c *frames) put(f *frame) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.last) == decodedFrames {
		c.last = slices.Delete(c.last, 0, 1)
	}
	c.last = append(c.last, f)
}

// frame reads a frame.
func (s *Store) frame(number uint64) (*frame, error) {
	r := frameReader{s: s}
	f, err := r.frame(number)
	if err == nil {
		r.keep()
	}
	return f, err
}

// frameReader reads frames one after another. They share memory, because a page can read many and use few.
type frameReader struct {
	s    *Store
	last *frame // the frame that was read last
	kept bool   // last is not in room
	room segment.Room
}

// frame reads a frame. It is valid until the next one is read, unless keep is called before.
func (r *frameReader) frame(number uint64) (*frame, error) {
	if r.last != nil && r.last.number == number {
		return r.last, nil
	}
	if r.last = r.s.frames.get(number); r.last != nil {
		r.kept = true
		return r.last, nil
	}
	stored, err := r.s.log.Frame(number, &r.room)
	if err != nil {
		return nil, r.s.health.Read(err)
	}
	f, err := decodeFrame(stored)
	if err == nil {
		r.last, r.kept = f, false
	}
	return f, err
}

// keep puts the last frame into the cache.
func (r *frameReader) keep() {
	if !r.kept {
		r.s.frames.put(r.last)
		r.kept, r.room = true, segment.Room{}
	}
}

func decodeFrame(stored segment.Frame) (*frame, error) {
	f := &frame{number: stored.Number, headed: stored.Number, items: stored.Items}
	if len(stored.Head) == 8 {
		if f.headed = binary.BigEndian.Uint64(stored.Head); f.headed < f.number {
			return f, nil
		}
	}
	if err := f.head.UnmarshalBinary(stored.Head); err != nil {
		return nil, fmt.Errorf("%w: frame %d: %w", errCorrupt, stored.Number, err)
	}
	return f, nil
}
