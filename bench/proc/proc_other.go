//go:build !linux

package proc

import (
	"errors"
	"os/exec"
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
