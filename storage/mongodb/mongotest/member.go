package mongotest

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"syscall"

	"github.com/Shopify/toxiproxy/v2"
)

// member is one mongod. Its directory and address outlive its process.
type member struct {
	bin, dir string
	addr     string           // the address that it listens on
	public   string           // the address for clients: the proxy's, if it has one
	proxy    *toxiproxy.Proxy // nil if it has no proxy
	args     []string
	env      []string // variables of the process, besides those of this one

	process *os.Process
	done    chan struct{} // closed when the process has ended
}

// start starts the process. On Linux the process dies with its parent.
func (m *member) start() error {
	_, port, err := net.SplitHostPort(m.addr)
	if err != nil {
		return err
	}
	args := append([]string{
		"--dbpath", m.dir, "--port", port, "--bind_ip", "127.0.0.1", "--replSet", setName, "--nounixsocket",
		"--wiredTigerCacheSizeGB", "0.25", "--oplogSize", "990", "--logpath", filepath.Join(m.dir, "log"), "--logappend",
		"--setParameter", "diagnosticDataCollectionEnabled=false", "--setParameter", "enableTestCommands=1",
	}, m.args...)
	cmd := exec.Command(m.bin, args...) //nolint:noctx // the process outlives every context
	cmd.Env = append(os.Environ(), m.env...)
	dieWithParent(cmd)
	started := make(chan error)
	m.done = make(chan struct{})
	go func() {
		runtime.LockOSThread() // for dieWithParent the parent is this thread
		err := cmd.Start()
		started <- err
		if err == nil {
			cmd.Wait() //nolint:errcheck // the result does not matter
		}
		close(m.done)
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("starting %s: %w", m.bin, err)
	}
	m.process = cmd.Process
	return nil
}

// end sends a signal and waits until the process has ended.
func (m *member) end(s os.Signal) error {
	if m.process == nil {
		return nil
	}
	if err := m.process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	if err := m.process.Signal(syscall.SIGCONT); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-m.done
	m.process = nil
	return nil
}

// given are the addresses that freeAddr has returned.
var given sync.Map

// freeAddr returns a free local address. No address is returned twice. Otherwise the kernel could
// choose the same address again before a member listens on it.
func freeAddr() (string, error) {
	for {
		l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // takes no time
		if err != nil {
			return "", err
		}
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(l.Addr().(*net.TCPAddr).Port))
		if err := l.Close(); err != nil {
			return "", err
		}
		if _, again := given.LoadOrStore(addr, true); !again {
			return addr, nil
		}
	}
}
