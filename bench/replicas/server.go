package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"writ/bench/proc"
	"writ/storage/mongodb/mongotest"
)

// organization is the one that everything is measured with.
const organization = "bench"

// plans has one that no run uses up.
const plans = `{"free": {"name": "free", "evaluations": 1000000000, "agents": 5, "policies": 100, "tokens": 1000, "retention_days": 7, "csv_export": false}}`

// bench starts servers in a directory.
type bench struct {
	options
	dir     string
	started []*server
}

// server is a writ that runs, and what was measured of it.
type server struct {
	name, url string
	operator  string // a token
	process   *exec.Cmd
	set       *mongotest.Set // or nil
	members   []int          // process ids

	decided                 float64   // in the closed loops
	rates                   []float64 // decisions/s of them
	writs, mongods, drivers []float64 // µs of processor time a decision
	driverSpent             time.Duration
}

// serve starts a writ whose keys are in data, on set or on the embedded store.
func (b *bench) serve(ctx context.Context, name, data string, set *mongotest.Set) (*server, error) {
	data = filepath.Join(b.dir, data)
	file := filepath.Join(b.dir, "plans.json")
	if err := os.WriteFile(file, []byte(plans), 0o600); err != nil {
		return nil, err
	}
	addr, admin, err := freeAddrs()
	if err != nil {
		return nil, err
	}
	args := []string{"serve", "--addr", addr, "--admin-addr", admin, "--data", data, "--plans", file, "--queue-deadline", "2s"} // throughput is asked for, not refusal
	s := &server{name: name, url: "http://" + addr}
	if set != nil {
		args = append(args, "--store=mongodb", "--mongodb-uri", set.URI())
		s.set, s.members = set, set.Processes()
	}
	s.process = exec.Command(b.writ, args...) //nolint:gosec,noctx // stopped by stop
	var log bytes.Buffer
	s.process.Stderr = &log
	if err := s.process.Start(); err != nil {
		return nil, err
	}
	b.started = append(b.started, s)
	for begun := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
		if err == nil {
			conn.Close() //nolint:errcheck // nothing was sent
			break
		}
		if time.Since(begun) > time.Minute {
			return nil, errors.Join(err, fmt.Errorf("%s does not listen", name))
		}
	}
	out, err := exec.CommandContext(ctx, b.writ, "token", "operator", "--org", organization, "--data", data).Output() //nolint:gosec // ours
	s.operator = strings.TrimSpace(string(out))
	return s, err
}

func freeAddrs() (a, b string, err error) {
	for _, to := range []*string{&a, &b} {
		l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // local
		if err != nil {
			return "", "", err
		}
		defer l.Close() //nolint:errcheck // only its address is of use
		*to = l.Addr().String()
	}
	return a, b, nil
}

func (s *server) stop() {
	if s.process.ProcessState != nil {
		return
	}
	if err := s.process.Process.Signal(syscall.SIGTERM); err == nil {
		s.process.Wait() //nolint:errcheck // however it ends
	}
}

func (b *bench) stop() {
	for _, s := range b.started {
		s.stop()
	}
}

// load runs the driver at s and returns what it printed, which it prints, too.
func (b *bench) load(ctx context.Context, s *server, label string, args ...string) (string, error) {
	args = append([]string{
		"-label", strings.ReplaceAll(label, " ", "-"), "-url", s.url + "/v1/policy/evaluate", "-org", organization, "-operator", s.operator,
		"-conns", strconv.Itoa(b.conns), "-duration", b.duration.String(), "-warmup", "0s",
	}, args...)
	cmd := exec.CommandContext(ctx, b.driver, args...) //nolint:gosec // ours
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	os.Stdout.Write(out) //nolint:errcheck // for people
	if err == nil {
		s.driverSpent = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	return string(out), err
}

// closed runs a closed loop at s, after a short one that warms up.
func (b *bench) closed(ctx context.Context, s *server, round int) error {
	if round == 0 {
		if _, err := b.load(ctx, s, "warm up, "+s.name, "-duration", "2s", "-conns", "64"); err != nil {
			return err
		}
	}
	writ, members := proc.Spent(s.process.Process.Pid), proc.Spent(s.members...)
	out, err := b.load(ctx, s, fmt.Sprintf("%s/%d", s.name, round+1))
	if err != nil {
		return err
	}
	decided, rate := field(out, "requests="), field(out, "requests/s=")
	each := func(d time.Duration) float64 { return float64(d.Microseconds()) / cmp.Or(decided, 1) }
	s.decided += decided
	s.rates = append(s.rates, rate)
	s.writs = append(s.writs, each(proc.Spent(s.process.Process.Pid)-writ))
	s.mongods = append(s.mongods, each(proc.Spent(s.members...)-members))
	s.drivers = append(s.drivers, each(s.driverSpent))
	return nil
}

// summary prints the medians of the closed loops, beside those of the embedded store.
func (s *server) summary(embedded *server) {
	rate, writ := median(s.rates), median(s.writs)
	fmt.Printf("%-14s decisions/s=%.0f (%.2f of embedded) processor µs a decision: writ=%.1f (%.2f of embedded) members=%.1f driver=%.1f\n",
		s.name, rate, rate/median(embedded.rates), writ, writ/median(embedded.writs), median(s.mongods), median(s.drivers))
}

// grown prints how many bytes a decision of the closed loops takes on a member, in
// which before are the sizes before them.
func (s *server) grown(ctx context.Context, before mongotest.Sizes) error {
	after, err := s.set.Sizes(ctx, "writ")
	if err != nil {
		return err
	}
	each := func(after, before int64) float64 { return float64(after-before) / s.decided }
	fmt.Printf("%-14s bytes a decision on each member: data=%.0f, on the disk=%.0f and its indexes=%.0f; oplog=%.0f\n", s.name,
		each(after.Data, before.Data), each(after.Storage, before.Storage), each(after.Indexes, before.Indexes), each(after.Oplog, before.Oplog))
	return nil
}

// field returns the number after a name in what the driver printed.
func field(out, name string) float64 {
	_, rest, _ := strings.Cut(out, " "+name)
	number, _, _ := strings.Cut(rest, " ")
	n, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0 // which is seen
	}
	return n
}
