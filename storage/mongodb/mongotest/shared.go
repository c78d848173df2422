package mongotest

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"
)

// shared has the sets that [Shared] has started, by the number of their members.
var shared struct {
	sync.Mutex
	sets map[int]*Set
}

// Shared returns a set with a number of members. The tests of a package share the set, so each test
// must use its own database. If a test stops members, it must start them again before it ends.
// Shared skips t if no server is available. The package's TestMain must be [Main].
func Shared(t testing.TB, members int) *Set {
	t.Helper()
	skipWithout(t)
	shared.Lock()
	defer shared.Unlock()
	s := shared.sets[members]
	if s == nil {
		var err error
		if s, err = Start(context.Background(), members); err != nil {
			t.Fatalf("starting a replica set: %v", err)
		}
		if shared.sets == nil {
			shared.sets = make(map[int]*Set)
		}
		shared.sets[members] = s
	}
	if members > 1 {
		t.Cleanup(func() {
			if t.Failed() { // a failed test may have left members stopped
				if err := drop(members); err != nil {
					t.Errorf("stopping a replica set: %v", err)
				}
			}
		})
	}
	return s
}

func drop(members int) error {
	shared.Lock()
	defer shared.Unlock()
	s := shared.sets[members]
	delete(shared.sets, members)
	if s == nil {
		return nil
	}
	return s.Stop()
}

// Main runs the tests of a package and stops the shared sets. The tests wait for the sets more than
// they compute, so four parallel tests run at once.
func Main(m *testing.M) {
	flag.Parse()
	err := flag.Set("test.parallel", strconv.Itoa(max(4, runtime.GOMAXPROCS(0))))
	code := m.Run()
	if err := errors.Join(err, drop(1), drop(3)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}
