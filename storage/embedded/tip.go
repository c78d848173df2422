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

// tip is the position of a store's last write. Every durable write is one of its
// heads or one of its changes.
type tip struct {
	// Head is the sequence of the last head, Hash its hash; zeros where there is
	// none.
	Head uint64
	Hash [32]byte
	// Change is the number of the last write that was no commit: of a document, a
	// settlement, a removal.
	Change uint64
}

// The file of a tip is beside the store's directory, under its name with
// tipExt, so that what takes the directory leaves it. It is text:
//
//	writ tip 1
//	head 203 5d41402abc4b2a76b9719d911017c5925d41402abc4b2a76b9719d911017c592
//	change 9
//	sum SHA-256 of the lines above, in hex
//
// The sum tells damage. It is no signature: who can write the file can write any.
const (
	tipExt    = ".tip"
	tipFormat = "writ tip 1\nhead %d %x\nchange %d\n"
)

var (
	errNoTip      = errors.New("is missing")
	errDamagedTip = errors.New("is damaged")
)

func tipName(dir string) string { return filepath.Clean(dir) + tipExt }

func (t tip) text() []byte {
	lines := fmt.Appendf(nil, tipFormat, t.Head, t.Hash, t.Change)
	sum := sha256.Sum256(lines)
	return fmt.Appendf(lines, "sum %x\n", sum)
}

// parseTip reads what text returned, and nothing else.
func parseTip(text []byte) (tip, error) {
	var t tip
	var hash string
	if _, err := fmt.Sscanf(string(text), "writ tip 1\nhead %d %s\nchange %d\n", &t.Head, &hash, &t.Change); err != nil {
		return tip{}, errDamagedTip
	}
	if h, err := hex.DecodeString(hash); err != nil || copy(t.Hash[:], h) != len(t.Hash) || string(t.text()) != string(text) {
		return tip{}, errDamagedTip
	}
	return t, nil
}

// readTip returns what was noted of the store in dir. Its error is errNoTip or
// errDamagedTip, or tells why the file can't be read.
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
