package api

import "bytes"

// ambiguousLength reports whether raw, a request's header lines, gives the
// length of the body more than once. Fiber takes one of them; a proxy in front
// may take another, and then what one reads as a body the other reads as the
// next request.
func ambiguousLength(raw []byte) bool {
	n := 0
	for len(raw) > 0 {
		line, rest, _ := bytes.Cut(raw, []byte("\n"))
		raw = rest
		if len(line) == 0 || line[0]|0x20 != 'c' && line[0]|0x20 != 't' {
			continue
		}
		name, _, _ := bytes.Cut(line, []byte(":"))
		name = bytes.TrimRight(name, " \t")
		if bytes.EqualFold(name, []byte("Content-Length")) || bytes.EqualFold(name, []byte("Transfer-Encoding")) {
			n++
		}
	}
	return n > 1
}
