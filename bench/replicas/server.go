package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"writ/bench"
	"writ/bench/load"
	"writ/bench/proc"
	"writ/storage/mongodb/mongotest"
)

// organization is the one that everything is measured with.
const organization = "bench"

// plans has one that no run uses up.
const plans = `{"free": {"name": "free", "evaluations": 1000000000, "agents": 5, "policies": 100, "tokens": 1000, "retention_days": 7, "csv_export": false}}`

// runner starts servers in a directory.
type runner struct {
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

	decided                 float64        // in the closed loops
	rates                   []float64      // decisions/s of them
	writs, mongods, drivers []float64      // µs of processor time a decision
	subject                 *bench.Subject // once it was measured
}

// serve starts a writ whose keys are in data, on set or on the embedded store.
func (b *runner) serve(ctx context.Context, name, data string, set *mongotest.Set) (*server, error) {
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

func (b *runner) stop() {
	for _, s := range b.started {
		s.stop()
	}
}

// load measures s once, and prints what it measured.
func (b *runner) load(ctx context.Context, s *server, label string, o load.Options) (*bench.Run, error) {
	if s.subject == nil {
		base, err := url.Parse(s.url)
		if err != nil {
			return nil, err
		}
		bearer := func(string) (string, error) { return s.operator, nil }
		work := bench.Work{Organization: organization, Organizations: 1, Policies: 1}
		if s.subject, err = bench.Connect(ctx, base, work, bearer, s.process.Process.Pid, ""); err != nil {
			return nil, err
		}
	}
	o.Duration, o.Patience = cmp.Or(o.Duration, b.duration), time.Second
	r, err := bench.Measure(ctx, s.subject, o, nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", label, err)
	}
	if r.Subject, r.Load = label, "closed"; o.Rate > 0 {
		r.Load = fmt.Sprintf("%.0f", o.Rate)
	}
	fmt.Println(r)
	return r, nil
}

// closed runs a closed loop at s, after a short one that warms up.
func (b *runner) closed(ctx context.Context, s *server, round int) error {
	if round == 0 {
		if _, err := b.load(ctx, s, "warm up, "+s.name, load.Options{Conns: 64, Duration: 2 * time.Second}); err != nil {
			return err
		}
	}
	members := proc.Spent(s.members...)
	r, err := b.load(ctx, s, fmt.Sprintf("%s/%d", s.name, round+1), load.Options{Conns: b.conns})
	if err != nil {
		return err
	}
	decided := float64(r.Accepted)
	s.decided += decided
	s.rates = append(s.rates, r.Rate())
	s.writs = append(s.writs, r.Processor())
	s.mongods = append(s.mongods, (proc.Spent(s.members...)-members).Seconds()*1e6/decided)
	s.drivers = append(s.drivers, r.DriverSeconds*1e6/decided)
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
