package bench

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"
)

// Here returns a header that describes this machine and the measurement.
func Here(command, revision string) Header {
	h := Header{
		Command: command, Date: time.Now().UTC().Format(time.RFC3339), Revision: revision, Go: runtime.Version(),
		Machine:    strings.TrimSpace(strings.Join([]string{model(), runtime.GOARCH, kernel()}, ", ")),
		Processors: runtime.NumCPU(),
	}
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		if f := strings.Fields(string(text)); len(f) > 3 {
			h.Load = strings.Join(f[:3], " ")
		}
	}
	return h
}

// model returns the name that Linux has for the processor.
func model() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return "unknown processor"
	}
	defer f.Close() //nolint:errcheck // the file was only read
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if name, value, _ := strings.Cut(lines.Text(), ":"); strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown processor"
}

func kernel() string {
	text, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return runtime.GOOS
	}
	return fmt.Sprintf("%s %s", runtime.GOOS, strings.TrimSpace(string(text)))
}
