package index

// Keys are the keys of a frame with their values. They can be used again after Reset.
type Keys struct {
	// Buf has all keys and values, one after the other. Append one, and pass the result to
	// End.
	Buf  []byte
	ends []int
}

// End ends a key, or the value after it, that was appended to Buf.
func (k *Keys) End(buf []byte) {
	k.Buf, k.ends = buf, append(k.ends, len(buf))
}

// Reset takes the keys out.
func (k *Keys) Reset() { k.Buf, k.ends = k.Buf[:0], k.ends[:0] }

// all yields the keys, which share their memory.
func (k *Keys) all(yield func(textRow) bool) {
	text, start := string(k.Buf), 0
	for i := 0; i < len(k.ends); i += 2 {
		middle, end := k.ends[i], k.ends[i+1]
		if !yield(textRow{text, start, middle, end}) {
			return
		}
		start = end
	}
}
