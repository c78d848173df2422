package proc

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Spent returns the sum of the processor times of processes so far. A process that has ended
// counts 0.
func Spent(pids ...int) (sum time.Duration) {
	for _, pid := range pids {
		// The clock is CPUCLOCK_SCHED of the process: see clock_getcpuclockid(3).
		var spent unix.Timespec
		//nolint:gosec // ids of processes have 22 bits
		if pid > 0 && unix.ClockGettime(int32(^pid<<3|2), &spent) == nil {
			sum += time.Duration(spent.Nano())
		}
	}
	return sum
}

// Start starts a command that may run only on these processors. Without processors it may run
// on all.
func Start(cmd *exec.Cmd, processors []int) error {
	if len(processors) == 0 {
		return cmd.Start()
	}
	// A new process inherits the processors of the thread that starts it.
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

// Pin lets this process run only on these processors. Go gets as many threads as there are
// processors.
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

// Lead makes a command start in a process group of its own.
func Lead(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// Signal sends a signal to the process group of a command that Lead prepared and that was started.
func Signal(cmd *exec.Cmd, signal syscall.Signal) error {
	return syscall.Kill(-cmd.Process.Pid, signal)
}

// Peak returns how much memory an ended process had at most.
func Peak(state *os.ProcessState) (bytes int64, ok bool) {
	usage, ok := state.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0, false
	}
	return usage.Maxrss << 10, true
}
