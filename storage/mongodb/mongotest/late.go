package mongotest

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Late delays the events of the change streams of one application. The commands of the application are not
// delayed, and a stream answers in time, with earlier events.
type Late struct {
	App string // the appName of URIs
	by  atomic.Int64
	at  atomic.Pointer[func(c Command, answered bool)]

	mu   sync.Mutex
	held map[int64][]lateEvent // by cursor
}

// Command is a command of an application.
type Command struct {
	Name       string
	Collection string // "" if it has none
	Session    string // the id of its session
}

type lateEvent struct {
	at    time.Time
	event any
}

// By sets the delay of events that come from now on.
func (l *Late) By(d time.Duration) { l.by.Store(int64(d)) }

// At calls f before a command of the application is passed on, and again before its answer is. Neither is passed
// on until f returns. The connections of the application call f at the same time.
func (l *Late) At(f func(c Command, answered bool)) { l.at.Store(&f) }

func (l *Late) reached(c Command, answered bool) {
	if f := l.at.Load(); f != nil && c.Name != "" {
		(*f)(c, answered)
	}
}

// LateFor starts a set as For does, with one member. Clients connect through a proxy that can delay streams.
func LateFor(t testing.TB) (*Set, *Late) {
	t.Helper()
	l := newLate()
	return of(t, 1, func(s *Set) error { return l.proxy(t, s) }), l
}

// LateWithUsers does the same as LateFor, with a set that requires [User].
func LateWithUsers(t testing.TB) (*Set, *Late) {
	t.Helper()
	l := newLate()
	return of(t, 1, (*Set).requireUser, func(s *Set) error { return l.proxy(t, s) }), l
}

func newLate() *Late { return &Late{App: "late", held: make(map[int64][]lateEvent)} }

func (l *Late) proxy(t testing.TB, s *Set) error {
	var config net.ListenConfig
	listener, err := config.Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	t.Cleanup(func() { listener.Close() }) //nolint:errcheck // the test ends
	m := s.members[0]
	m.public = listener.Addr().String()
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go l.connect(client, m.addr)
		}
	}()
	return nil
}

// connect passes messages between a client and a member until one of them ends the connection.
func (l *Late) connect(client net.Conn, member string) {
	defer client.Close() //nolint:errcheck // the test ends
	var dialer net.Dialer
	server, err := dialer.DialContext(context.Background(), "tcp", member)
	if err != nil {
		return
	}
	defer server.Close() //nolint:errcheck // the test ends
	var late atomic.Bool
	var mores, commands sync.Map // by the ids of requests: those for more of a stream, and all
	go func() {
		defer server.Close() //nolint:errcheck // the test ends
		for {
			m, err := readMessage(client)
			if err != nil {
				return
			}
			if bytes.Contains(m, append([]byte("name\x00"), lengthed(l.App)...)) { // of the handshake
				late.Store(true)
			}
			if late.Load() && bytes.Contains(m, []byte("getMore\x00")) && bytes.Contains(m, []byte("$cmd.aggregate\x00")) {
				mores.Store(binary.LittleEndian.Uint32(m[4:]), true)
			}
			if late.Load() {
				c := commandOf(m)
				commands.Store(binary.LittleEndian.Uint32(m[4:]), c)
				l.reached(c, false)
			}
			if _, err := server.Write(m); err != nil {
				return
			}
		}
	}()
	for {
		m, err := readMessage(server)
		if err != nil {
			return
		}
		if _, ok := mores.LoadAndDelete(binary.LittleEndian.Uint32(m[8:])); ok {
			m = l.hold(m)
		}
		if c, ok := commands.LoadAndDelete(binary.LittleEndian.Uint32(m[8:])); ok {
			l.reached(c.(Command), true)
		}
		if _, err := client.Write(m); err != nil {
			return
		}
	}
}

// commandOf returns the command of a message. It has no name if the message is another.
func commandOf(m []byte) (c Command) {
	const opMsg = 2013
	if len(m) < messageBody || binary.LittleEndian.Uint32(m[12:]) != opMsg {
		return c
	}
	body := bson.Raw(m[messageBody:])
	first, err := body.IndexErr(0)
	if err != nil {
		return c
	}
	c.Name = first.Key()
	c.Collection, _ = first.Value().StringValueOK()
	_, id, _ := body.Lookup("lsid", "id").BinaryOK()
	c.Session = string(id)
	return c
}

// lengthed returns a string as BSON has it.
func lengthed(s string) []byte {
	//nolint:gosec // it is short
	return append(binary.LittleEndian.AppendUint32(nil, uint32(len(s)+1)), s+"\x00"...)
}

const (
	messageHeader = 16
	// messageBody is where the document of an OP_MSG begins: after its flags and the kind of its section.
	messageBody = messageHeader + 5
	longest     = 48 << 20
)

func readMessage(r io.Reader) ([]byte, error) {
	var length [4]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint32(length[:])
	if n < messageHeader || n > longest {
		return nil, errors.New("no message of MongoDB")
	}
	m := make([]byte, n)
	copy(m, length[:])
	_, err := io.ReadFull(r, m[len(length):])
	return m, err
}

// hold takes the events out of an answer, and puts those into it that were held for long enough.
func (l *Late) hold(m []byte) []byte {
	var answer bson.D
	if len(m) < messageBody || bson.Unmarshal(m[messageBody:], &answer) != nil {
		return m
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	by := time.Duration(l.by.Load())
	for _, e := range answer {
		cursor, ok := e.Value.(bson.D)
		if e.Key != "cursor" || !ok {
			continue
		}
		id := int64(0)
		for _, f := range cursor {
			if f.Key == "id" {
				id, _ = f.Value.(int64)
			}
		}
		for i := range cursor {
			events, ok := cursor[i].Value.(bson.A)
			if cursor[i].Key != "nextBatch" || !ok {
				continue
			}
			held, due := l.held[id], bson.A{}
			for _, event := range events {
				held = append(held, lateEvent{time.Now().Add(by), event})
			}
			for len(held) > 0 && !time.Now().Before(held[0].at) {
				due, held = append(due, held[0].event), held[1:]
			}
			l.held[id], cursor[i].Value = held, due
		}
	}
	body, err := bson.Marshal(answer)
	if err != nil {
		return m
	}
	m = append(m[:messageBody:messageBody], body...)
	binary.LittleEndian.PutUint32(m, uint32(len(m))) //nolint:gosec // it is short
	return m
}
