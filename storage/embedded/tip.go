package embedded

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// tip is the position of a store's last write. Every write is either a frame or a change.
type tip struct {
	// Head is the sequence of the last head. Hash is the hash of that head. Both are zero in a
	// store without heads.
	Head uint64
	Hash [32]byte
	// Frame is the number of the last frame. A frame has decisions or an import.
	Frame uint64
	// Change is the number of the last other write. Such a write changes documents or removes rows.
	Change uint64
}

// The tip is recorded in a file beside the store's directory, so that the file stays if the
// directory is lost. Its name is the directory's name with tipExt. Its content is text:
//
//	writ tip 2
//	head 203 5d41402abc4b2a76b9719d911017c5925d41402abc4b2a76b9719d911017c592
//	frame 210
//	change 9
//	sum SHA-256 of the lines above, in hex
//
// The sum detects damage. It is not a signature: anyone who can write the file can write any tip.
const (
	tipExt    = ".tip"
	tipFormat = "writ tip 2\nhead %d %x\nframe %d\nchange %d\n"
)

var (
	errNoTip      = errors.New("is missing")
	errDamagedTip = errors.New("is damaged")
)

func tipName(dir string) string { return filepath.Clean(dir) + tipExt }

func (t tip) text() []byte {
	lines := fmt.Appendf(nil, tipFormat, t.Head, t.Hash, t.Frame, t.Change)
	sum := sha256.Sum256(lines)
	return fmt.Appendf(lines, "sum %x\n", sum)
}

// parseTip reads a tip that text wrote. Any other text is an error.
func parseTip(text []byte) (tip, error) {
	var t tip
	var hash string
	if _, err := fmt.Sscanf(string(text), "writ tip 2\nhead %d %s\nframe %d\nchange %d\n", &t.Head, &hash, &t.Frame,
		&t.Change); err != nil {
		return tip{}, errDamagedTip
	}
	if h, err := hex.DecodeString(hash); err != nil || copy(t.Hash[:], h) != len(t.Hash) ||
		string(t.text()) != string(text) {
		return tip{}, errDamagedTip
	}
	return t, nil
}

// readTip returns the recorded tip of the store in dir. Its error is errNoTip or
// errDamagedTip, or says why the file cannot be read.
func readTip(dir string, fs vfs.FS) (tip, error) {
	text, err := readAll(fs, tipName(dir))
	if errors.Is(err, os.ErrNotExist) {
		return tip{}, errNoTip
	}
	if err != nil {
		return tip{}, err
	}
	return parseTip(text)
}

func writeTip(dir string, fs vfs.FS, t tip) error {
	return replaceFile(fs, tipName(dir), t.text())
}
