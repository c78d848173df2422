//go:build unix

package decisionlog

import (
	"os"
	"syscall"
)

// lock locks f until it is closed. It fails if another process holds the lock.
func lock(f *os.File) error {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) //nolint:gosec // a descriptor is small
}
