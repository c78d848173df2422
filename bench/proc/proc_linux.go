package proc

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Spent returns the processor time of processes so far, together; a process that is
// gone has spent none.
func Spent(pids ...int) (sum time.Duration) {
	for _, pid := range pids {
		// CPUCLOCK_SCHED of a process: clock_getcpuclockid(3).
		var spent unix.Timespec
		//nolint:gosec // ids of processes have 22 bits
		if pid > 0 && unix.ClockGettime(int32(^pid<<3|2), &spent) == nil {
			sum += time.Duration(spent.Nano())
		}
	}
	return sum
}

// Start starts a command on these processors alone; none: on all.
func Start(cmd *exec.Cmd, processors []int) error {
	if len(processors) == 0 {
		return cmd.Start()
	}
	// A process gets the processors of the thread that starts it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return fmt.Errorf("pinning: %w", err)
	}
	wanted := set(processors)
	if err := unix.SchedSetaffinity(0, &wanted); err != nil {
		return fmt.Errorf("pinning to processors %v: %w", processors, err)
	}
	err := cmd.Start()
	return errors.Join(err, unix.SchedSetaffinity(0, &before))
}

// Pin has this process run on these processors alone, with as many threads of Go.
func Pin(processors []int) error {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return fmt.Errorf("pinning: %w", err)
	}
	wanted := set(processors)
	for _, task := range tasks {
		id, err := strconv.Atoi(task.Name())
		if err == nil {
			err = unix.SchedSetaffinity(id, &wanted)
		}
		if err != nil && !errors.Is(err, unix.ESRCH) { // a thread may have ended
			return fmt.Errorf("pinning to processors %v: %w", processors, err)
		}
	}
	runtime.GOMAXPROCS(len(processors))
	return nil
}

// Allowed returns the processors that this process may run on.
func Allowed() (processors []int) {
	var now unix.CPUSet
	if unix.SchedGetaffinity(0, &now) != nil {
		return nil
	}
	for i := range 8 * len(now) * 8 {
		if now.IsSet(i) {
			processors = append(processors, i)
		}
	}
	return processors
}

func set(processors []int) (s unix.CPUSet) {
	for _, p := range processors {
		s.Set(p)
	}
	return s
}
