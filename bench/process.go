package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"writ.example/writ/bench/proc"
)

// startPatience bounds the wait until a server listens. stopPatience bounds the wait until it
// has ended.
const (
	startPatience = time.Minute
	stopPatience  = 30 * time.Second
)

// process is a server that was started.
type process struct {
	cmd   *exec.Cmd
	log   bytes.Buffer // the output of the process; to be read after the process has ended
	ended chan struct{}
}

// startProcess starts a server and waits for any answer at addr. The server may run only on
// these processors; without processors it may run on all. Its variables are the variables of
// this process without writ's own, and environ.
func startProcess(
	ctx context.Context, addr string, processors []int, environ []string, name string, args ...string,
) (*process, error) {
	p := &process{cmd: exec.Command(name, args...), ended: make(chan struct{})} //nolint:gosec,noctx // stop ends it
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, "WRIT_") {
			p.cmd.Env = append(p.cmd.Env, entry)
		}
	}
	p.cmd.Env = append(p.cmd.Env, environ...)
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	// An interrupt of the terminal must reach only this process, which then stops the others.
	proc.Lead(p.cmd)
	if err := proc.Start(p.cmd, processors); err != nil {
		return nil, err
	}
	go func() {
		_ = p.cmd.Wait() // the exit status does not matter
		close(p.ended)
	}()
	for begun := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		if answers(ctx, addr) {
			return p, nil
		}
		select {
		case <-p.ended:
			return nil, fmt.Errorf("%s ended at once: %.1000s", name, p.log.String())
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), p.stop())
		default:
		}
		if time.Since(begun) > startPatience {
			return nil, errors.Join(
				fmt.Errorf("%s does not answer at %s after %v", name, addr, startPatience), p.stop(),
			)
		}
	}
}

// answers reports whether the server answers a request. A server may listen before it serves.
func answers(ctx context.Context, addr string) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/health", nil)
	if err != nil {
		return false
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	return resp.Body.Close() == nil
}

// stop ends the process and all processes that it has started. The peer from npm is a launcher
// that starts the server, and a signal to the launcher alone leaves the server running.
func (p *process) stop() error { return p.stopWithin(stopPatience) }

func (p *process) stopWithin(patience time.Duration) error {
	if err := proc.Signal(p.cmd, syscall.SIGTERM); errors.Is(err, syscall.ESRCH) {
		return nil
	}
	select {
	case <-p.ended: // this process, and every other that could still write to the log
		return nil
	case <-time.After(patience):
		err := proc.Signal(p.cmd, syscall.SIGKILL)
		<-p.ended
		return errors.Join(fmt.Errorf("%s did not end within %v of SIGTERM", p.cmd.Path, patience), err)
	}
}

// freeAddress returns a local address on which nothing listens.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // local
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}
