package oracles

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
)

// program is a process that lives long. It answers each line of JSON with a line of JSON.
type program struct {
	name string
	in   *bufio.Writer
	out  *bufio.Reader
}

// venv is the path of the Python that `make oracles` installs with the libraries of
// testdata/requirements.txt.
var venv = filepath.Join("..", "..", "bin", "oracles", "bin", "python3")

func interpreter() string {
	if _, err := os.Stat(venv); err == nil {
		return venv
	}
	return "python3"
}

// asked has the programs that give readings.
type asked struct {
	node   *program
	python []*program
}

// newAsked starts node once and Python once for each processor.
func newAsked(t *testing.T) *asked {
	t.Helper()
	a := &asked{node: start(t, "node", "testdata/oracle.js")}
	for range runtime.NumCPU() {
		p := start(t, interpreter(), "testdata/oracle.py")
		p.greet(t)
		a.python = append(a.python, p)
	}
	return a
}

// ask returns the programs' readings of each text.
func (a *asked) ask(t *testing.T, texts []string) [][]reading {
	t.Helper()
	var wg sync.WaitGroup
	errs := make([]error, 1+len(a.python))
	var fromNode [][]reading
	wg.Go(func() { fromNode, errs[0] = a.node.ask(texts) })
	shares := make([][][]reading, len(a.python))
	size := (len(texts) + len(a.python) - 1) / len(a.python)
	for i, share := range slices.Collect(slices.Chunk(texts, size)) {
		wg.Go(func() { shares[i], errs[1+i] = a.python[i].ask(share) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	fromPython := slices.Concat(shares...)
	all := make([][]reading, len(texts))
	for i, text := range texts {
		all[i] = slices.Concat(goReadings(text), fromNode[i], fromPython[i])
	}
	return all
}

// greet reads which libraries oracle.py could load and reports a missing one.
func (p *program) greet(t *testing.T) {
	t.Helper()
	var have []string
	if err := p.read(&have); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"urllib", "urllib3", "requests", "libcurl"} {
		if !slices.Contains(have, want) {
			t.Logf("SKIPPED %s: Python cannot load it; `make oracles` installs urllib3 and requests", want)
		}
	}
}

// start starts a script. The script runs until the test ends.
func start(t *testing.T, name string, args ...string) *program {
	t.Helper()
	file, err := exec.LookPath(name)
	if err != nil {
		missing(t, name)
	}
	cmd := exec.Command(file, args...)
	cmd.Env = append(os.Environ(), "PYTHONIOENCODING=utf-8")
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("starting %s: %v", name, err)
	}
	t.Cleanup(func() {
		stdin.Close()
		io.Copy(io.Discard, stdout) // unread output of a failed test would keep the process from ending
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s ended with %v", name, err)
		}
	})
	return &program{name: name, in: bufio.NewWriterSize(stdin, 1<<16), out: bufio.NewReaderSize(stdout, 1<<16)}
}

// missing ends a test because its program is not installed. In CI it fails the test.
func missing(t *testing.T, name string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatalf("%s is not installed: the readers of resources must be held to it", name)
	}
	t.Skipf("SKIPPED: %s is not installed, so no reader of resources is held to it", name)
}

// ask returns the readings of each text, in order.
func (p *program) ask(texts []string) ([][]reading, error) {
	wrote := make(chan error, 1)
	go func() { wrote <- p.write(texts) }()
	all := make([][]reading, len(texts))
	for i := range texts {
		if err := p.read(&all[i]); err != nil {
			return nil, err
		}
	}
	return all, <-wrote
}

// write sends the texts and an empty line. The program may hold its answers back until the
// empty line.
func (p *program) write(texts []string) error {
	for _, text := range texts {
		line, err := json.Marshal(text)
		if err != nil {
			return err
		}
		p.in.Write(line)
		p.in.WriteByte('\n')
	}
	p.in.WriteByte('\n')
	return p.in.Flush()
}

func (p *program) read(v any) error {
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("%s ended early: %w", p.name, err)
	}
	return json.Unmarshal(line, v)
}
