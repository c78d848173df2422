package wire

import (
	"errors"
	"strings"
	"testing"
)

func TestAmbiguous(t *testing.T) {
	for name, tc := range map[string]struct {
		lines  string // the header lines
		http11 bool
		want   error
	}{
		"one reading":        {"Host: x\r\nContent-Length: 5\r\n\r\n", true, nil},
		"chunked":            {"Host: x\r\nTransfer-Encoding: Chunked\r\n\r\n", true, nil},
		"no host before 1.1": {"\r\n", false, nil},
		"two lengths":        {"Host: x\r\nContent-Length: 2\r\ncontent-length: 3\r\n\r\n", true, errTwoLengths},
		"length and chunks":  {"Host: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", true, errTwoLengths},
		"two hosts":          {"Host: x\r\nhost: y\r\n\r\n", true, errTwoHosts},
		"no host":            {"\r\n", true, errNoHost},
		"no host, a header":  {"X: host\r\n\r\n", true, errNoHost},
		"odd coding":         {"Host: x\r\nTransfer-Encoding: xchunked\r\n\r\n", true, errCoding},
		"coding and chunks":  {"Host: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", true, errCoding},
		"coding identity":    {"Host: x\r\nTransfer-Encoding: identity\r\n\r\n", true, errCoding},
		"folded coding":      {"Host: x\r\nTransfer-Encoding: chunked\r\n , identity\r\n\r\n", true, errFolded},
		"folded by a tab":    {"Host: x\r\nX: a\r\n\tb\r\n\r\n", true, errFolded},
		"CR amid a header":   {"Host: x\r\nX: a\rTransfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n", true, errControl},
		"NUL in a header":    {"Host: x\r\nX\x00: a\r\n\r\n", true, errControl},
	} {
		t.Run(name, func(t *testing.T) {
			if err := Ambiguous([]byte(tc.lines), tc.http11); !errors.Is(err, tc.want) {
				t.Errorf("Ambiguous(%q) = %v, want %v", tc.lines, err, tc.want)
			}
		})
	}
	if err := Ambiguous([]byte(strings.Repeat("X: y\r\n", 1000)+"\r\n"), false); err != nil {
		t.Errorf("Ambiguous of a thousand headers = %v, want nil", err)
	}
}
