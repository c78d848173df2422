package wire

import (
	"io"
	"net"
	"slices"
	"testing"
	"time"
)

// countedConn records the deadlines that reach it.
type countedConn struct {
	net.Conn
	reads, writes []time.Time
}

func (c *countedConn) Read([]byte) (int, error) { return 0, io.EOF }

func (c *countedConn) SetReadDeadline(t time.Time) error {
	c.reads = append(c.reads, t)
	return nil
}

func (c *countedConn) SetWriteDeadline(t time.Time) error {
	c.writes = append(c.writes, t)
	return nil
}

// TestConn_Deadlines checks that each read and write has its deadline, at most Slack later. It also checks that a
// deadline that is already in force is not set again.
func TestConn_Deadlines(t *testing.T) {
	const read, write = "read", "write"
	start := time.Unix(1_800_000_000, 0)
	type step struct {
		of   string
		at   time.Duration
		sets bool
	}
	for name, steps := range map[string][]step{
		"requests at once":      {{read, time.Minute, true}, {read, time.Minute, false}, {read, time.Minute + Slack/2, false}},
		"a later one":           {{read, time.Minute, true}, {read, time.Minute + Slack, false}, {read, time.Minute + Slack + 1, true}},
		"a much earlier one":    {{read, time.Minute, true}, {read, time.Second, true}},
		"idle, then a request":  {{read, 2 * time.Minute, true}, {read, 10 * time.Second, true}, {read, 2 * time.Minute, true}},
		"answers":               {{write, time.Minute, true}, {write, time.Minute + Slack/2, false}, {write, 2 * time.Minute, true}},
		"an answer that is cut": {{write, time.Minute, true}, {write, -time.Hour, true}},
	} {
		t.Run(name, func(t *testing.T) {
			counted := &countedConn{}
			c := &Conn{Conn: counted}
			for i, s := range steps {
				at := start.Add(s.at)
				set, of := &counted.writes, c.SetWriteDeadline
				if s.of == read {
					set, of = &counted.reads, c.SetReadDeadline
				}
				before := slices.Clone(*set)
				if err := of(at); err != nil {
					t.Fatal(err)
				}
				if s.of == read {
					if len(*set) != len(before) {
						t.Errorf("step %d: SetReadDeadline reached the connection, want that only of Read", i)
					}
					_, _ = c.Read(nil) // the connection is at its end
				}
				if got := len(*set) - len(before); got != map[bool]int{true: 1}[s.sets] {
					t.Errorf("step %d: %d deadlines were set, want %t", i, got, s.sets)
				}
				if stands := (*set)[len(*set)-1]; stands.Before(at) || stands.After(at.Add(Slack)) {
					t.Errorf("step %d: the deadline is %v, want %v or up to %v later", i, stands, at, Slack)
				}
			}
		})
	}
}

// TestConn_NoDeadline checks that the zero time removes the deadline in force.
func TestConn_NoDeadline(t *testing.T) {
	counted := &countedConn{}
	c := &Conn{Conn: counted}
	for _, at := range []time.Time{{}, time.Unix(1_800_000_000, 0), {}, {}} {
		if err := c.SetDeadline(at); err != nil {
			t.Fatal(err)
		}
		_, _ = c.Read(nil) // the connection is at its end
	}
	for _, set := range [][]time.Time{counted.reads, counted.writes} {
		if len(set) != 2 || set[0].IsZero() || !set[1].IsZero() {
			t.Errorf("deadlines = %v, want one and then none", set)
		}
	}
}

// TestConn_DeadlineOfAClosedConnection checks that a deadline of a closed connection is no error, because
// fasthttp panics on one. The write after it fails.
func TestConn_DeadlineOfAClosedConnection(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	client, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	accepted, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	c := &Conn{Conn: accepted}
	_ = accepted.Close()
	for _, at := range []time.Time{time.Now().Add(time.Minute), {}} {
		if err := c.SetWriteDeadline(at); err != nil {
			t.Errorf("SetWriteDeadline(%v) = %v", at, err)
		}
	}
	if _, err := c.Write([]byte("x")); err == nil {
		t.Error("a closed connection takes a write")
	}
}
