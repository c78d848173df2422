//go:build linux

package system

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"writ.example/writ/storage/mongodb/mongotest"
)

// TestOutages causes faults of networks, disks and hosts at members of a replica set while replicas
// decide. Only a soak test includes the long faults.
func TestOutages(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED in short mode: starts a replica set and replicas")
	}
	set := mongotest.ProxiedFor(t, 3)
	tests := map[string]func(*testing.T, *cluster){"SteppedDownPrimary": steppedDown, "RefusedPrimary": refusedPrimary}
	if soaking() {
		tests["SwallowedRequests"] = swallowed(false)
		tests["SwallowedRequestsAndAnswers"] = swallowed(true)
		tests["NobodyHearsAnybody"] = allSwallowed
		tests["FrozenPrimary"] = frozenPrimary
		tests["FullDisk"] = fullDiskOfThePrimary
		tests["FarMembers"] = farMembers
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { test(t, newCluster(t, set)) })
	}
}

// steppedDown makes the primary step down, as in a maintenance of its host.
func steppedDown(t *testing.T, c *cluster) {
	underLoad(t, c, func(l *replicaLoad) {
		for range rounds(1, 10) {
			l.during(t, "the primary steps down", 0, func(primary int) error {
				return c.set.AdminOf(t.Context(), primary, bson.D{{Key: "replSetStepDown", Value: 3}, {Key: "secondaryCatchUpPeriodSecs", Value: 2}})
			}, ended, c.primary(t))
		}
	})
}

// farMembers makes the primary step down while each answer of each member takes 20 ms longer, also to other members.
func farMembers(t *testing.T, c *cluster) {
	must(t, c.set.Delay(20*time.Millisecond))
	defer func() {
		for member := range 3 {
			must(t, c.set.Mend(context.Background(), member))
		}
	}()
	steppedDown(t, c)
}

// ended is the mend function of a fault that ends by itself.
func ended(int) error { return nil }

// refusedPrimary makes the primary's address refuse all connections, including connections from
// members.
func refusedPrimary(t *testing.T, c *cluster) {
	underLoad(t, c, func(l *replicaLoad) {
		for range rounds(1, 5) {
			l.during(t, "connections to the primary are refused", time.Duration(rounds(3, 15))*time.Second, func(primary int) error {
				c.set.Refuse(primary)
				return nil
			}, c.mend(t), c.primary(t))
		}
	})
}

// swallowed drops packets to the primary while connections stay open. If both is true, it also
// drops packets from the primary. MongoDB elects a new primary only if no answers arrive.
func swallowed(both bool) func(*testing.T, *cluster) {
	what, lasts := "what is sent to the primary is lost", 10*time.Second
	if both {
		what, lasts = what+", and what it answers", 20*time.Second
	}
	return func(t *testing.T, c *cluster) {
		underLoad(t, c, func(l *replicaLoad) {
			for range 3 {
				l.during(t, what, lasts, func(primary int) error { return c.set.Swallow(primary, both) }, c.mend(t), c.primary(t))
			}
		})
	}
}

// allSwallowed drops all packets between members, and between members and replicas.
func allSwallowed(t *testing.T, c *cluster) {
	const members = 3
	mend := c.mend(t)
	each := func(f func(int) error) func(int) error {
		return func(int) error {
			for i := range members {
				if err := f(i); err != nil {
					return err
				}
			}
			return nil
		}
	}
	underLoad(t, c, func(l *replicaLoad) {
		for range 3 {
			l.during(t, "no member hears anybody", 10*time.Second, each(func(i int) error { return c.set.Swallow(i, true) }), each(mend), 0)
		}
	})
}

// mend returns a function that ends a fault of a member's network.
func (c *cluster) mend(t *testing.T) func(int) error {
	return func(i int) error { return c.set.Mend(t.Context(), i) }
}

// frozenPrimary freezes the primary, as an overcommitted host would. The primary continues after a
// new primary was elected.
func frozenPrimary(t *testing.T, c *cluster) {
	underLoad(t, c, func(l *replicaLoad) {
		for range 3 {
			l.during(t, "the primary is frozen", 20*time.Second, c.set.Freeze, c.set.Thaw, c.primary(t))
		}
	})
}

// fullDiskOfThePrimary moves a member to a small disk, makes that member the primary, and fills the
// disk. Then mongod ends.
func fullDiskOfThePrimary(t *testing.T, c *cluster) {
	const size = 1 << 30 // a journal needs 300 MB
	member := c.primary(t)
	dir := c.set.Dir(member)
	do := func(f func(int) error) {
		t.Helper()
		must(t, f(member))
	}
	do(c.set.Kill)
	if err := mountTmpfs(dir, size); err != nil {
		t.Errorf("%v", c.set.Restart(member))
		t.Skipf("SKIPPED: a full disk needs root, to mount a small file system: %v", err)
	}
	defer func() {
		do(c.set.Kill)
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
		do(c.set.Restart) // with its earlier data
	}()
	do(c.set.Restart) // it copies all data from the other members
	underLoad(t, c, func(l *replicaLoad) {
		for range 2 {
			waitFor(t, "the member to be the primary", func() bool {
				err := c.set.AdminOf(t.Context(), member, bson.D{{Key: "replSetStepUp", Value: 1}})
				time.Sleep(100 * time.Millisecond)
				return err == nil && c.primary(t) == member
			})
			ballast := filepath.Join(dir, "ballast")
			l.during(t, "the disk of the primary is full", 0, func(int) error {
				fill(t, ballast)
				select {
				case <-c.set.Ended(member):
				case <-time.After(patience):
					t.Errorf("mongod still runs %v after its disk was full", patience)
				}
				return nil
			}, func(int) error {
				if err := os.Remove(ballast); err != nil {
					return err
				}
				do(c.set.Kill)
				return c.set.Restart(member)
			}, member)
		}
	})
}
