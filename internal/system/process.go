package system

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"syscall"
	"testing"
	"time"

	"writ.example/writ/api/operator"
	"writ.example/writ/examples"
	"writ.example/writ/storage/datadir"
)

// process is a running `writ serve`.
type process struct {
	url, admin string

	cmd    *exec.Cmd
	stderr *log
	done   chan struct{} // closed when it has ended
}

// log collects the output of a process.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

var serving = regexp.MustCompile(`^writ serves on (\S+); metrics and readiness on (\S+)$`)

// launch starts the real binary on free ports. It does not wait until the binary serves. ready
// gets true when the binary serves, or false if it has ended before.
func launch(t *testing.T, data datadir.Dir, flags ...string) (p *process, ready <-chan bool) {
	t.Helper()
	writ, err := released()
	must(t, err)
	return launchProgram(t, writ, nil, data, flags...)
}

// launchFaulty is like launch for the program with faults. variables set the faults.
func launchFaulty(t *testing.T, variables []string, data datadir.Dir, flags ...string) (p *process, ready <-chan bool) {
	t.Helper()
	writ, err := faulty()
	must(t, err)
	return launchProgram(t, writ, variables, data, flags...)
}

func launchProgram(t *testing.T, writ string, variables []string, data datadir.Dir, flags ...string) (*process, <-chan bool) {
	t.Helper()
	// A test of something else must not fail because the machine is busy.
	patient := []string{"--queue-deadline", "1m"}
	args := append([]string{"serve", "--addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0", "--data", string(data)}, append(patient, flags...)...)
	p := &process{cmd: exec.Command(writ, args...), stderr: new(log), done: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), variables...)
	p.cmd.Stderr = p.stderr
	out, err := p.cmd.StdoutPipe()
	must(t, err)
	must(t, p.cmd.Start())
	t.Cleanup(func() { p.kill(t) })
	served := make(chan bool, 1)
	go func() {
		defer close(p.done)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if m := serving.FindStringSubmatch(lines.Text()); m != nil {
				p.url, p.admin = m[1], m[2]
				served <- true
			}
		}
		_ = p.cmd.Wait() // how it ended is in its ProcessState
		served <- false
	}()
	return p, served
}

// start starts the real binary and waits until it serves.
func start(t *testing.T, data datadir.Dir, flags ...string) *process {
	t.Helper()
	p, ready := launch(t, data, flags...)
	return p.serves(t, ready)
}

// startFaulty starts the program with faults and waits until it serves.
func startFaulty(t *testing.T, variables []string, data datadir.Dir, flags ...string) *process {
	t.Helper()
	p, ready := launchFaulty(t, variables, data, flags...)
	return p.serves(t, ready)
}

// serves waits until the process serves, and returns it.
func (p *process) serves(t *testing.T, ready <-chan bool) *process {
	t.Helper()
	select {
	case ok := <-ready:
		if !ok {
			t.Fatalf("writ serve ended: %v\n%s", p.cmd.ProcessState, p.stderr)
		}
	case <-time.After(patience):
		t.Fatalf("writ serve does not serve after %v\n%s", patience, p.stderr)
	}
	return p
}

// stacks ends the process, unless it has ended already, and returns its log. The log then ends with the stacks of all
// its goroutines, which say what it waited for.
func (p *process) stacks() string {
	err := p.cmd.Process.Signal(syscall.SIGQUIT)
	if err == nil {
		select {
		case <-p.done:
		case <-time.After(patience):
			err = errors.New("it does not end")
		}
	}
	if err != nil {
		return fmt.Sprintf("%s after SIGQUIT: %v\n%s", p.url, err, p.stderr)
	}
	return fmt.Sprintf("%s after SIGQUIT:\n%s", p.url, p.stderr)
}

// kill ends the process as kill -9 does, unless it has ended already.
func (p *process) kill(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGKILL); err == nil {
		<-p.done
	}
}

// terminate asks the process to stop.
func (p *process) terminate(t *testing.T) {
	t.Helper()
	must(t, p.cmd.Process.Signal(syscall.SIGTERM))
}

// ended waits until the process ends by itself. It fails the test unless the exit code is 0.
func (p *process) ended(t *testing.T) {
	t.Helper()
	select {
	case <-p.done:
	case <-time.After(patience):
		t.Fatalf("writ serve has not stopped %v after SIGTERM\n%s", patience, p.stderr)
	}
	if code := p.cmd.ProcessState.ExitCode(); code != exitOK {
		t.Fatalf("writ serve = %v, want exit code 0\n%s", p.cmd.ProcessState, p.stderr)
	}
}

func (p *process) stop(t *testing.T) {
	t.Helper()
	p.terminate(t)
	p.ended(t)
}

// newData returns an empty data directory and an operator token for it.
func newData(t *testing.T) (data datadir.Dir, operator string) {
	t.Helper()
	data = datadir.Dir(filepath.Join(t.TempDir(), "data"))
	return data, tokenOf(t, data)
}

// deployed starts the real binary in a new data directory with the policy of register. It also
// returns an operator token for the directory.
func deployed(t *testing.T, flags ...string) (p *process, data datadir.Dir, operator string) {
	t.Helper()
	data, operator = newData(t)
	p = start(t, data, flags...)
	register(t, p.url, operator)
	return p, data, operator
}

func tokenOf(t *testing.T, data datadir.Dir) string {
	t.Helper()
	return signed(t, data, examples.Organization)
}

// signed returns an operator token of org.
func signed(t *testing.T, data datadir.Dir, org string) string {
	t.Helper()
	secret, err := data.Secret("")
	must(t, err)
	token, err := operator.Sign(secret, org, "test", time.Now(), time.Hour)
	must(t, err)
	return token
}

// manyEvaluations returns the flag of a plan that no test exhausts.
func manyEvaluations(t *testing.T) string {
	t.Helper()
	return plansOf(t, 1_000_000_000, 1)
}

// plansOf returns the flag of plans free and pro with so many evaluations.
func plansOf(t *testing.T, free, pro int) string {
	t.Helper()
	plan := func(name string, evaluations int) object {
		return object{"name": name, "evaluations": evaluations, "policies": 10, "agents": 10, "retention_days": 7}
	}
	return plansFlag(t, object{"free": plan("free", free), "pro": plan("pro", pro)})
}

// plansFlag returns the flag of plans in a file.
func plansFlag(t *testing.T, plans object) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "plans.json")
	must(t, os.WriteFile(file, []byte(encode(t, plans)), 0o600))
	return "--plans=" + file
}

// waitFor waits until ok returns true. It fails the test if that takes too long.
func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for late := time.Now().Add(patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(late) {
			t.Fatalf("waited %v for %s", patience, what)
		}
	}
}
