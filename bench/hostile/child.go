package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"

	"github.com/go-json-experiment/json"
)

// Attacks run in processes of their own, at a lower priority than the victim's:
// on another machine they would not take the victim's processor either. A child
// prepares its attack and says so in a line; it attacks from the first line that
// it reads until its input ends, and then writes its report.

// childNice is how much the attackers yield to the victim and the server.
const childNice = "10"

// child is the process of an attack.
type child struct {
	name string
	in   io.WriteCloser
	out  *bufio.Reader
	cmd  *exec.Cmd
}

// errRefused means that the attack's rules were refused when they were created.
var errRefused = errors.New("refused when it is created")

// spawn starts the process of an attack and waits until it is ready.
func (s *server) spawn(ctx context.Context, name string) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &child{name: name, cmd: exec.CommandContext(ctx, "nice", "-n", childNice, self, "-attack", name,
		"-url", s.url, "-writ", s.writ, "-data", s.data, "-conns", strconv.Itoa(s.conns), "-history", strconv.Itoa(s.history))}
	c.cmd.Stderr = os.Stderr
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.out = bufio.NewReader(out)
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	line, err := c.out.ReadString('\n')
	switch {
	case err != nil:
		return nil, errors.Join(fmt.Errorf("the attacker did not get ready: %w", err), c.cmd.Wait())
	case line != "ready\n":
		return nil, errors.Join(fmt.Errorf("%w: %s", errRefused, line), c.cmd.Wait())
	}
	return c, nil
}

func (c *child) start() error {
	_, err := io.WriteString(c.in, "start\n")
	return err
}

// stop ends the attack and returns its report.
func (c *child) stop() (r report, err error) {
	err = c.in.Close()
	data, readErr := io.ReadAll(c.out)
	if err = errors.Join(err, readErr, c.cmd.Wait()); err != nil {
		return report{}, fmt.Errorf("the attacker: %w", err)
	}
	return r, json.Unmarshal(data, &r)
}

// beChild is the child's side.
func (s *server) beChild(ctx context.Context, name string) error {
	a := find(name)
	if a == nil {
		return fmt.Errorf("no attack %q", name)
	}
	if err := s.prepare(ctx, a); err != nil {
		if a.refused && isRefusal(err) {
			fmt.Println(err)
			return nil
		}
		return fmt.Errorf("preparing %s: %w", name, err)
	}
	fmt.Println("ready")
	in := bufio.NewReader(os.Stdin)
	if _, err := in.ReadString('\n'); err != nil {
		return fmt.Errorf("waiting to start: %w", err)
	}
	ctx, stop := context.WithCancel(ctx)
	done := s.launch(ctx, a)
	_, err := io.Copy(io.Discard, in) // until it ends
	stop()
	r := <-done
	if err := errors.Join(err, r.err); err != nil {
		return err
	}
	return json.MarshalWrite(os.Stdout, r)
}

func find(name string) *attack {
	for _, a := range attacks() {
		if a.name == name {
			return a
		}
	}
	return nil
}
