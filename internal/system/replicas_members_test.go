package system

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"writ.example/writ/storage/mongodb/mongotest"
)

// TestReplicas_Members causes faults of the members' disks and clocks while replicas decide.
func TestReplicas_Members(t *testing.T) {
	if !soaking() {
		t.Skip("SKIPPED but for make soak: starts a replica set, and copies the disks of members")
	}
	set := mongotest.For(t, 3)
	t.Run("OlderDisk", func(t *testing.T) { olderDisk(t, newCluster(t, set)) })
	t.Run("EmptyDisk", func(t *testing.T) { emptyDisk(t, newCluster(t, set)) })
	t.Run("OlderDiskElected", func(t *testing.T) { olderDiskElected(t, newCluster(t, set)) })
	t.Run("ClocksApart", func(t *testing.T) { clocksOfMembersApart(t, newCluster(t, set)) })
}

// copyDisk copies the disk of a member, which is stopped for that.
func (c *cluster) copyDisk(t *testing.T, member int) (disk string) {
	t.Helper()
	disk = filepath.Join(t.TempDir(), "disk")
	must(t, c.set.Kill(member))
	must(t, os.CopyFS(disk, os.DirFS(c.set.Dir(member))))
	must(t, c.set.Restart(member))
	c.awaitState(t, member, secondary)
	return disk
}

// replaceDisk gives a stopped member another disk. An empty name gives it an empty one.
func (c *cluster) replaceDisk(t *testing.T, member int, disk string) {
	t.Helper()
	dir := c.set.Dir(member)
	must(t, os.RemoveAll(dir))
	if disk == "" {
		must(t, os.Mkdir(dir, 0o700))
		return
	}
	must(t, os.CopyFS(dir, os.DirFS(disk)))
}

// The states of members, as MongoDB numbers them.
const (
	primary   = 1
	secondary = 2
)

// stateOf returns the state of a member, or -1 if it does not answer.
func (c *cluster) stateOf(member int) int {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	var status struct {
		State int `bson:"myState"`
	}
	if err := c.set.Ask(ctx, member, bson.D{{Key: "replSetGetStatus", Value: 1}}, &status); err != nil {
		return -1
	}
	return status.State
}

// awaitState waits until a member has a state. A member that copies all data from another takes a while.
func (c *cluster) awaitState(t *testing.T, member, state int) {
	t.Helper()
	for late := time.Now().Add(4 * patience); c.stateOf(member) != state; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(late) {
			t.Fatalf("member %d has state %d, want %d", member, c.stateOf(member), state)
		}
	}
}

// stepUp makes a member the primary.
func (c *cluster) stepUp(t *testing.T, member int) {
	t.Helper()
	waitFor(t, "the member to be the primary", func() bool {
		if c.stateOf(member) == primary {
			return true
		}
		_ = c.set.AdminOf(t.Context(), member, bson.D{{Key: "replSetStepUp", Value: 1}}) // it may lag
		time.Sleep(100 * time.Millisecond)
		return false
	})
}

// olderDisk restores the disk of a secondary from an older copy, while the other members run. The member must get
// what it lacks from the others before it can be the primary.
func olderDisk(t *testing.T, c *cluster) {
	underLoad(t, c, func(l *replicaLoad) {
		for range 3 {
			member := (c.primary(t) + 1) % 3
			disk := c.copyDisk(t, member)
			l.during(t, "the disk of a secondary is older", 0, func(int) error {
				l.await(t, between)
				must(t, c.set.Kill(member))
				c.replaceDisk(t, member, disk)
				return c.set.Restart(member)
			}, func(int) error {
				c.stepUp(t, member)
				return nil
			}, member)
		}
	})
}

// emptyDisk gives a secondary an empty disk. It must copy all data from the others.
func emptyDisk(t *testing.T, c *cluster) {
	underLoad(t, c, func(l *replicaLoad) {
		member := (c.primary(t) + 1) % 3
		l.during(t, "the disk of a secondary is empty", 0, func(int) error {
			must(t, c.set.Kill(member))
			c.replaceDisk(t, member, "")
			return c.set.Restart(member)
		}, func(int) error {
			c.awaitState(t, member, secondary)
			c.stepUp(t, member)
			return nil
		}, member)
	})
}

// olderDiskElected restores the disk of a member from an older copy, while the third member lags and the primary is
// down. These two are a majority, and lack what the primary and the restored member had acknowledged. MongoDB
// cannot notice this. The replicas must: they must end and say why, and allow nothing after an answered kill switch.
func olderDiskElected(t *testing.T, c *cluster) {
	c.mortal = true
	c.start(t, 2)
	first := c.primary(t)
	restored, lagging := (first+1)%3, (first+2)%3
	f, operator := newFlip(t, c, "bot"), newSender(t, c.token, 2)
	disk := c.copyDisk(t, restored)
	decide := func(n int) {
		t.Helper()
		for i := range n {
			got, err := c.settle(operator, i, newIntent("bot", "deploy", "k8s/staging/web"), c.urls)
			if err != nil || got.status != 200 {
				t.Fatalf("evaluate = %d %s, %v", got.status, got.body, err)
			}
		}
	}
	decide(50)
	must(t, c.set.Kill(lagging))
	const lost = 50
	decide(lost)
	must(t, f.insist(operator, 0, c.urls))
	must(t, c.set.Kill(first))
	must(t, c.set.Kill(restored))
	c.replaceDisk(t, restored, disk)
	must(t, c.set.Restart(restored))
	must(t, c.set.Restart(lagging))
	c.endRestored(t, operator, true)
	must(t, c.set.Restart(first)) // it has what the others lack, and rolls it back
	waitFor(t, "the old primary to be a secondary", func() bool { return c.stateOf(first) == secondary })

	c.replicas = []*process{c.launch(t), c.launch(t)}
	got := operator.decide(t, c.replicas[0].url, newIntent("bot", "deploy", "k8s/staging/web"))
	rows := history(t, c.replicas[0].url, c.token)
	t.Logf("after the restore: %d of %d decisions are left, and the kill switch that was answered is gone: %.80s",
		len(rows)-1, 50+lost, got.body)
	c.proved(t, len(rows), 4)
	c.stop(t)
}

// clocksOfMembersApart gives the members clocks that are 15 s apart, and moves the primary from one to the next.
// No replica may be given up, and nothing may be lost.
func clocksOfMembersApart(t *testing.T, c *cluster) {
	library := faketime(t)
	for member, clock := range []string{"+0", "+15s", "-15s"} {
		c.set.SetEnv(member, "LD_PRELOAD="+library, "FAKETIME="+clock, "FAKETIME_DONT_FAKE_MONOTONIC=1",
			"FAKETIME_FORCE_MONOTONIC_FIX=0") // otherwise waits of the members last too long
		must(t, c.set.Kill(member))
		must(t, c.set.Restart(member))
	}
	must(t, c.set.WaitForPrimary(t.Context()))
	for member, clock := range []time.Duration{0, 15 * time.Second, -15 * time.Second} {
		var now struct {
			Local time.Time `bson:"localTime"`
		}
		must(t, c.set.Ask(t.Context(), member, bson.D{{Key: "hello", Value: 1}}, &now))
		if off := time.Until(now.Local); (off - clock).Abs() > 5*time.Second {
			t.Fatalf("the clock of member %d is ahead by %v, want %v", member, off, clock)
		}
	}
	underLoad(t, c, func(l *replicaLoad) {
		for i := range 9 {
			l.during(t, "the primary has another clock", 0, func(member int) error {
				c.stepUp(t, member)
				return nil
			}, ended, i%3)
			for _, p := range c.replicas {
				if status, body := get(t, p.admin+"/readyz"); status != 200 {
					t.Errorf("/readyz beside a clock that is 15 s off = %d %s", status, body)
				}
			}
		}
	})
}

// faketime returns the library that changes the clock of a process.
func faketime(t *testing.T) string {
	t.Helper()
	root, err := unpackDebian([]string{"libfaketime"})
	if err != nil {
		t.Skipf("SKIPPED: Debian's libfaketime cannot be had: %v", err)
	}
	found, err := filepath.Glob(filepath.Join(root, "usr/lib/*-linux-gnu/faketime/libfaketimeMT.so.1"))
	if err != nil || len(found) != 1 {
		t.Fatalf("the library of libfaketime is %q, %v", found, err)
	}
	return found[0]
}
