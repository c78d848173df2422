//go:build unix

package embedded

import (
	"io"
	"os"
	"syscall"
)

// lockShared keeps everybody from opening the store that f is the lock of, and
// fails where somebody has it open. f need not be writable.
func lockShared(f *os.File) error {
	return syscall.FcntlFlock(f.Fd(), syscall.F_SETLK, &syscall.Flock_t{Type: syscall.F_RDLCK, Whence: io.SeekStart})
}
