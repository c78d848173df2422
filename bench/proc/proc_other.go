//go:build !linux

package proc

import (
	"errors"
	"os/exec"
	"time"
)

// Spent returns 0: it is read on Linux.
func Spent(...int) time.Duration { return 0 }

// Start starts a command. Processors are chosen on Linux.
func Start(cmd *exec.Cmd, processors []int) error {
	if len(processors) > 0 {
		return errors.New("pinning works on Linux alone")
	}
	return cmd.Start()
}

// Pin fails: processors are chosen on Linux.
func Pin([]int) error { return errors.New("pinning works on Linux alone") }

// Allowed returns none: processors are chosen on Linux.
func Allowed() []int { return nil }
