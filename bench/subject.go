package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"writ.example/writ/api/operator"
	"writ.example/writ/bench/load"
	"writ.example/writ/bench/proc"
	"writ.example/writ/storage/datadir"
)

// Subject is a server to measure.
type Subject struct {
	About
	target *load.Target
	pid    int    // the process of the server; 0: not known
	group  []int  // the other processes of its group, such as the server that a launcher has started
	admin  string // the URL of the admin address, whose /metrics have the processor time; empty: not known
	stop   func() error
	data   string // the data directory of the started server
	beside []int  // the processes that work for the server
}

// Stop ends the processes that were started for the subject.
func (s *Subject) Stop() error {
	if s.stop == nil {
		return nil
	}
	return s.stop()
}

// intents returns how many intents a request of the subject has.
func (s *Subject) intents() int {
	if s.target == nil {
		return 1
	}
	return max(1, s.target.Intents)
}

// known reports whether the processor time of the server can be read.
func (s *Subject) known() bool { return s.pid != 0 || s.admin != "" }

// spent returns the processor time of the server so far.
func (s *Subject) spent(ctx context.Context) (time.Duration, error) {
	switch {
	case s.pid != 0:
		return proc.Spent(s.pid) + proc.Spent(s.group...), nil
	case s.admin == "":
		return 0, nil
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.admin+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), "process_cpu_seconds_total "); ok {
			n, err := strconv.ParseFloat(text, 64)
			return time.Duration(n * float64(time.Second)), err
		}
	}
	return 0, fmt.Errorf("%s/metrics has no process_cpu_seconds_total", s.admin)
}

// Connect prepares the work at a running writ with the address base. pid is the process of
// writ, and admin is the URL of its admin address. Both may be empty.
func Connect(ctx context.Context, base *url.URL, w Work, bearer Bearer, pid int, admin string) (*Subject, error) {
	t, err := w.target(ctx, base, bearer)
	if err != nil {
		return nil, err
	}
	return &Subject{About: About{"writ", base.String()}, target: t, pid: pid, admin: strings.TrimRight(admin, "/")}, nil
}

// plans has a free plan that no run uses up.
const plans = `{"free": {"name": "free", "evaluations": 1000000000, "agents": 5, "policies": 10000, "rules": 10000, "tokens": 1000, "retention_days": 7, "csv_export": true}}`

// Program is a binary of writ, with the settings for Start.
type Program struct {
	Name   string // the name of the subject
	Binary string
	Args   []string // the flags of `writ serve`
	// Processors are the processors that the server may use. If it is empty, the server may use
	// all.
	Processors []int
	Limited    bool   // the limits of callers are the defaults of `writ serve`
	Dir        string // the data directory, which stays; empty: a temporary directory
	Beside     []int  // the processes that work for the server
}

// Start starts writ with all its data in one directory, and prepares the work.
func (p Program) Start(ctx context.Context, w Work) (_ *Subject, err error) {
	dir, clean := p.Dir, func() error { return nil }
	if dir == "" {
		if dir, err = os.MkdirTemp("", "writ-bench-"); err != nil {
			return nil, err
		}
		clean = func() error { return os.RemoveAll(dir) }
	}
	s := &Subject{About: About{p.Name, strings.Join(append([]string{p.Binary, "serve"}, p.Args...), " ")},
		beside: p.Beside, stop: clean}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.stop())
		}
	}()
	file := filepath.Join(dir, "plans.json")
	s.data = filepath.Join(dir, "data")
	if err := os.WriteFile(file, []byte(plans), 0o600); err != nil {
		return nil, err
	}
	addr, err := freeAddress()
	if err != nil {
		return nil, err
	}
	args := append([]string{"serve", "--addr", addr, "--admin-addr", "127.0.0.1:0", "--data", s.data, "--plans", file},
		p.Args...)
	// The limits are set as variables, because an earlier revision without such a limit ignores
	// them.
	environ := []string{"WRIT_RATE_LIMIT_ADDRESS=off", "WRIT_RATE_LIMIT_CHANGES=off", "WRIT_RATE_LIMIT_CREDENTIAL=off"}
	if p.Limited {
		environ = nil
	}
	started, err := startProcess(ctx, addr, p.Processors, environ, p.Binary, args...)
	if err != nil {
		return nil, err
	}
	s.pid = started.cmd.Process.Pid
	s.stop = func() error { return errors.Join(started.stop(), clean()) }
	bearer, err := OperatorTokens(filepath.Join(s.data, "operator-secret"))
	if err != nil {
		return nil, err
	}
	s.target, err = w.target(ctx, &url.URL{Scheme: "http", Host: addr}, bearer)
	return s, err
}

// OperatorTokens returns a Bearer that signs operator tokens with the secret in a file. Each
// token is valid for an hour.
func OperatorTokens(file string) (Bearer, error) {
	secret, err := datadir.Dir("").Secret(file)
	if err != nil {
		return nil, err
	}
	return func(organization string) (string, error) {
		return operator.Sign(secret, organization, "bench", time.Now(), time.Hour)
	}, nil
}
