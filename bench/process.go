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

	"writ/bench/proc"
)

// startPatience bounds the wait for a server to listen, stopPatience that for its end.
const (
	startPatience = time.Minute
	stopPatience  = 30 * time.Second
)

// process is a server that was started.
type process struct {
	cmd   *exec.Cmd
	log   bytes.Buffer // what it wrote; read after its end
	ended chan struct{}
}

// startProcess starts a server on these processors, none: all, and waits for any answer
// at addr. It gets the variables of this process without writ's, and then environ.
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
	// An interrupt of the terminal is for this process alone: it stops the others.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := proc.Start(p.cmd, processors); err != nil {
		return nil, err
	}
	go func() {
		_ = p.cmd.Wait() // however it ends
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

// answers reports whether a request is answered: servers may listen before they serve.
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

// stop ends the process.
func (p *process) stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	select {
	case <-p.ended:
		return nil
	case <-time.After(stopPatience):
		err := p.cmd.Process.Kill()
		<-p.ended
		return errors.Join(fmt.Errorf("%s did not end within %v of SIGTERM", p.cmd.Path, stopPatience), err)
	}
}

// freeAddress returns an address that nothing listens on.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // local
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}
