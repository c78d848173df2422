package index

// Keys has the keys of a frame with their values. After Reset it can be used for another frame.
type Keys struct {
	// Buf has all keys and values in sequence. The caller appends a key or a value to Buf and
	// passes the result to End.
	Buf  []byte
	ends []int
}

// End sets k.Buf to buf. The end of buf becomes the end of a key, or the end of the value after a
// key.
func (k *Keys) End(buf []byte) {
	k.Buf, k.ends = buf, append(k.ends, len(buf))
}

// Reset removes all keys.
func (k *Keys) Reset() { k.Buf, k.ends = k.Buf[:0], k.ends[:0] }

// all yields the keys with their values. All keys and values share one string.
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
