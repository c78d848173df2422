//go:build linux

package system

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"writ.example/writ/engine"
	"writ.example/writ/examples"
	"writ.example/writ/storage"
	"writ.example/writ/storage/datadir"
	"writ.example/writ/storage/embedded"
	"writ.example/writ/storage/mongodb/mongotest"
	"writ.example/writ/storage/registry"
	"writ.example/writ/storage/storagetest"
)

// fleet is the set of servers on which the test causes outcomes and faults.
type fleet struct {
	first, second *replica // these are behind the balancer
	core          *replica // uses an external core; a checkout panics
	frozen        *replica // is paused for short times, then overloaded
	full          *replica // its disk fills; nil if no disk can be mounted
	odd           *replica // its Rego decides otherwise, its tip cannot be noted, few connections are allowed, its customer pays for two decisions, it dies
	set           *mongotest.Set
	shares, mute  *replica // share the set; the second leads, and is frozen until it is given up. nil where there is no mongod
	coreFails     *atomic.Bool
}

// replica is a server with the policy of register and an operator token.
type replica struct {
	*process
	data  datadir.Dir
	token string
}

const unreadablePolicy = "0b0f6f6e-3c4e-4f54-9a71-2f3c6f1f7a10"

// startFleet starts all servers with one operator token.
func startFleet(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{coreFails: new(atomic.Bool)}
	data, token := newData(t)
	is := func(p *process, data datadir.Dir) *replica {
		register(t, p.url, token)
		return &replica{p, data, token}
	}
	run := func(data datadir.Dir, flags ...string) *replica { return is(start(t, data, flags...), data) }
	runFaulty := func(variables []string, data datadir.Dir, flags ...string) *replica {
		return is(startFaulty(t, variables, data, flags...), data)
	}
	shared := func(dir string) datadir.Dir {
		other := datadir.Dir(filepath.Join(dir, "data"))
		secret, err := os.ReadFile(data.OperatorSecret())
		must(t, err)
		must(t, other.Create())
		must(t, os.WriteFile(other.OperatorSecret(), secret, 0o600))
		return other
	}
	storeIn(t, data, func(r *registry.Registry) error { // the API would refuse this policy
		_, err := r.PutPolicy(t.Context(), &engine.ActionPolicy{
			PolicyID: unreadablePolicy, Version: 1, OrganizationID: examples.Organization, AgentID: "*", AllowedActionTypes: []string{"*"},
			BlockedResourcePatterns: []string{"a["}, Status: engine.StatusActive, UpdatedAt: time.Unix(1, 0),
		}, 0)
		return err
	})
	core := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f.coreFails.Load() {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		denyAsCore(w, r)
	}))
	t.Cleanup(core.Close)
	many, few := manyEvaluations(t), plansOf(t, 1, 2)
	f.first = run(data) // has the free plan, which the load uses up
	f.second = run(shared(t.TempDir()), many, "--approval-ttl", "1s")
	f.core = runFaulty(nil, shared(t.TempDir()), many, "--evaluation-core-url", core.URL+"/v1/data/writ/core/result",
		"--stripe-url=http://"+panickingHost, "--stripe-key=sk_test_1", "--stripe-webhook-secret=whsec_1",
		"--stripe-price-pro=price_1", "--stripe-price-business=price_2", "--portal-url=https://portal.example")
	f.frozen = run(shared(t.TempDir()), many, "--queue-deadline", "10ms")
	paying := shared(t.TempDir())
	storeIn(t, paying, func(r *registry.Registry) error {
		return storagetest.PutSubscription(t.Context(), r, &storage.Subscription{OrganizationID: examples.Organization, Plan: "pro"})
	})
	f.odd = runFaulty([]string{wrongEngine + "=1"}, paying, few, "--connections-per-address", "4", "--verify-engine", "1/1")
	if _, err := mongotest.Binary(t.Context()); err != nil {
		t.Logf("SKIPPED the panels and alerts of MongoDB: there is no real mongod: %.300q", err)
	} else {
		f.set = mongotest.For(t, 1)
		keys, store := shared(t.TempDir()), []string{many, "--store=mongodb", "--mongodb-uri", f.set.URI()}
		f.mute = run(keys, store...)
		f.shares = run(keys, store...)
	}
	if mount, err := tryMountSmall(t, 384<<20); err != nil {
		t.Logf("SKIPPED the alerts of a full disk: mounting a small file system needs root: %v", err)
	} else {
		f.full = run(shared(mount), many)
	}
	return f
}

// storeIn changes the documents in a directory that no server uses yet.
func storeIn(t *testing.T, data datadir.Dir, f func(*registry.Registry) error) {
	t.Helper()
	store, err := embedded.Open(data.Store(), embedded.Options{})
	must(t, err)
	must(t, errors.Join(f(registry.New(store)), store.Close()))
}

func (f *fleet) all() []*replica {
	all := []*replica{f.first, f.second, f.core, f.frozen, f.odd, f.full, f.shares, f.mute}
	return slices.DeleteFunc(all, func(r *replica) bool { return r == nil })
}
