//go:build linux

package proc

import (
	"os"
	"os/exec"
	"testing"
	"time"
)

func TestOther_IsWhatOthersSpend(t *testing.T) {
	before := Processors{All: 10 * time.Second, Used: 4 * time.Second, Stolen: time.Second}
	after := Processors{All: 14 * time.Second, Used: 7 * time.Second, Stolen: 1500 * time.Millisecond}
	// In two seconds two processors have four. Programs used three of these, and the host took
	// half of one.
	for own, want := range map[time.Duration]float64{0: 1.75, 3 * time.Second: .25, 3500 * time.Millisecond: 0, 4 * time.Second: 0} {
		if got := after.Other(before, own, 2*time.Second); got != want {
			t.Errorf("Other with %v of our own = %v, want %v", own, got, want)
		}
	}
}

func TestSpent_GrowsWithWork(t *testing.T) {
	before := Spent(os.Getpid())
	for sum, until := 0, time.Now().Add(20*time.Millisecond); time.Now().Before(until); sum++ {
		_ = sum
	}
	if got := Spent(os.Getpid()) - before; got <= 0 || got > 10*time.Second {
		t.Errorf("20 ms of work spent %v", got)
	}
	if got := Spent(1<<22 + 1); got != 0 {
		t.Errorf("a process that is not there spent %v", got)
	}
}

func TestStart_Pins(t *testing.T) {
	allowed := Allowed()
	if len(allowed) == 0 {
		t.Fatal("no processors")
	}
	last := allowed[len(allowed)-1]
	cmd := exec.Command("sh", "-c", "exec grep Cpus_allowed_list /proc/self/status")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := Start(cmd, []int{last}); err != nil {
		t.Fatal(err)
	}
	text := make([]byte, 100)
	n, _ := out.Read(text)
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if want := "Cpus_allowed_list:\t" + string(rune('0'+last)) + "\n"; last < 10 && string(text[:n]) != want {
		t.Errorf("the process may run on %q, want %q", text[:n], want)
	}
	if again := Allowed(); len(again) != len(allowed) {
		t.Errorf("this process may run on %v, before on %v", again, allowed)
	}
}
