package wire

import "bytes"

// FramingError says why two servers may split the same bytes into different requests. Such
// attacks are known as request smuggling.
type FramingError string

// Error implements error.
func (e FramingError) Error() string { return string(e) }

const (
	errTwoLengths FramingError = "the length of its body is given twice"
	errCoding     FramingError = "its Transfer-Encoding is not chunked"
	errTwoHosts   FramingError = "it has more than one Host"
	errNoHost     FramingError = "it has no Host"
	errControl    FramingError = "a header has a control character"
	errFolded     FramingError = "a header goes on in another line"
)

// Ambiguous returns a FramingError if two servers may read raw as different requests. raw has the
// header lines of a request. For example, a proxy reads bytes as a body, and Fiber reads these
// bytes as the next request. http11 says that the request is HTTP/1.1, which requires Host.
func Ambiguous(raw []byte, http11 bool) error {
	lengths, hosts := 0, 0
	for len(raw) > 0 {
		line, rest, _ := bytes.Cut(raw, []byte("\n"))
		raw = rest
		if n := len(line); n > 0 && line[n-1] == '\r' {
			line = line[:n-1]
		}
		if bytes.IndexByte(line, '\r') >= 0 || bytes.IndexByte(line, 0) >= 0 {
			return errControl
		}
		if len(line) == 0 {
			continue
		}
		if line[0] == ' ' || line[0] == '\t' {
			return errFolded // Fiber joins two lines that this code reads as two
		}
		switch line[0] | 0x20 {
		case 'c', 't', 'h':
		default:
			continue
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		switch name = bytes.TrimRight(name, " \t"); {
		case bytes.EqualFold(name, []byte("Host")):
			hosts++
		case bytes.EqualFold(name, []byte("Content-Length")):
			lengths++
		case bytes.EqualFold(name, []byte("Transfer-Encoding")):
			lengths++
			// Fiber treats every coding except "identity" as chunked.
			if !bytes.EqualFold(bytes.Trim(value, " \t"), []byte("chunked")) {
				return errCoding
			}
		}
	}
	switch {
	case lengths > 1:
		return errTwoLengths
	case hosts > 1:
		return errTwoHosts
	case hosts == 0 && http11:
		return errNoHost
	}
	return nil
}
