//go:build !linux

package proc

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// Spent returns 0, because only Linux has the figures.
func Spent(...int) time.Duration { return 0 }

// Start starts a command. It fails if processors are given, because only Linux can choose them.
func Start(cmd *exec.Cmd, processors []int) error {
	if len(processors) > 0 {
		return errors.New("pinning works on Linux alone")
	}
	return cmd.Start()
}

// Pin fails, because only Linux can choose processors.
func Pin([]int) error { return errors.New("pinning works on Linux alone") }

// Allowed returns none, because only Linux can choose processors.
func Allowed() []int { return nil }

// Lead does nothing.
func Lead(*exec.Cmd) {}

// Signal kills the process of a command that was started, whatever the signal.
func Signal(cmd *exec.Cmd, _ syscall.Signal) error { return cmd.Process.Kill() }

// Peak returns false, because only Linux has the figure in a known unit.
func Peak(*os.ProcessState) (bytes int64, ok bool) { return 0, false }
