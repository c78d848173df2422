//go:build !race

package embedded

import (
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestFault_AtManyWrites runs TestFault_NothingAcknowledgedIsLost for many n. With the race
// detector it would take minutes.
func TestFault_AtManyWrites(t *testing.T) {
	var writes []int64
	for n := int64(1); n < 100; n += 1 + n/3 {
		writes = append(writes, n)
	}
	runFaults(t, writes...)
}

// TestDamage_AfterKill checks "Damage does not open as an empty store". It damages every file at
// many places after kill -9. Open must return an error, or the store must have all data up to the
// recorded tip. The error must tell the operator what to do. Open must not change the directory.
func TestDamage_AfterKill(t *testing.T) {
	for name, k := range map[string]killed{"tables and a log": kill(t, false, false), "several logs, not all noted": kill(t, true, true)} {
		t.Run(name, func(t *testing.T) {
			outcomes := make(map[string]int)
			k.eachDamage(t, func(what string, disk *vfs.MemFS) { outcomes[k.hold(t, what, disk)]++ })
			t.Log(outcomes)
			for _, want := range []string{opened, unreadable, rolledBack, lost} {
				if outcomes[want] == 0 {
					t.Errorf("no damage ended as %q: the test leaves that out", want)
				}
			}
		})
	}
}

// eachDamage calls f for copies of the disk. Each copy has one damaged place in one file.
func (k *killed) eachDamage(t *testing.T, f func(what string, disk *vfs.MemFS)) {
	t.Helper()
	f("nothing damaged", k.disk.CrashClone(vfs.CrashCloneCfg{}))
	for file, text := range contents(t, k.disk) {
		for what, change := range damages {
			for _, at := range positions(file, len(text)) {
				disk := k.disk.CrashClone(vfs.CrashCloneCfg{})
				damage(t, disk, file, func(b []byte) []byte { return change(b, at) })
				f(fmt.Sprintf("%s %s at %d of %d", file, what, at, len(text)), disk)
			}
		}
		disk := k.disk.CrashClone(vfs.CrashCloneCfg{})
		must(t, disk.Remove(file))
		f(file+" removed", disk)
	}
}
