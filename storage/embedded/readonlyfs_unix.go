//go:build unix

package embedded

import (
	"io"
	"os"
	"syscall"
)

// lockShared locks f, the lock file of a store, so that no process can open the store. It
// fails if a process has the store open. f need not be writable.
func lockShared(f *os.File) error {
	return syscall.FcntlFlock(f.Fd(), syscall.F_SETLK, &syscall.Flock_t{Type: syscall.F_RDLCK, Whence: io.SeekStart})
}
