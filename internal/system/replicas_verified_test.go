package system

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"writ.example/writ/storage/mongodb/mongotest"
)

// TestReplicas_Verified verifies a database again and again since the last time, while replicas decide and are killed
// with kill -9, and so is writ verify. The runs together must have verified each decision once.
func TestReplicas_Verified(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED in short mode: starts a member and replicas")
	}
	c := newCluster(t, mongotest.For(t, 1))
	c.database, c.mortal = "writVerified", true
	c.start(t, 2)
	l := newReplicaLoad(c)
	stop := l.start(t, 4)
	kept := filepath.Join(t.TempDir(), "heads.json")
	args := []string{"verify", "--chain", "--store=mongodb", "--mongodb-uri", c.set.URI(), "--mongodb-database", c.database,
		"--keys", c.replicas[0].url + "/.well-known/jwks.json", "--resume", kept}
	verified := 0
	verify := func(want string) {
		t.Helper()
		code, said := run(t, args...)
		first, _, _ := strings.Cut(said, "\n")
		_, counts, _ := strings.Cut(first, want)
		var chains, heads, rows int
		plural := strings.NewReplacer(" 1 chain,", " 1 chains,", " 1 head,", " 1 heads,", " 1 decision,", " 1 decisions,").Replace(counts)
		if _, err := fmt.Sscanf(plural, " %d chains, %d heads, %d decisions,", &chains, &heads, &rows); code != exitOK || err != nil {
			t.Fatalf("writ verify --resume = exit code %d, %s\nwant %q", code, said, want)
		}
		verified += rows
	}
	for i := range rounds(3, 20) {
		l.await(t, between)
		if i == 0 {
			verify("MongoDB: whole:")
			continue
		}
		before, err := os.ReadFile(kept)
		must(t, err)
		began := time.Now()
		killed(t, func() bool { return time.Since(began) > time.Duration(i)*20*time.Millisecond }, args...)
		c.replicas[1].kill(t)
		c.replicas[1] = c.launch(t)
		l.serve(c.urls())
		if now, err := os.ReadFile(kept); err != nil || !bytes.Equal(now, before) {
			t.Logf("writ verify has ended before it was killed, %v", err)
			must(t, os.WriteFile(kept, before, 0o600))
		}
		verify("MongoDB: whole since the anchors:")
	}
	l.await(t, between)
	stop()
	verify("MongoDB: whole since the anchors:")
	if rows := len(history(t, c.replicas[0].url, c.token)); verified != rows || rows != len(l.sent) {
		t.Errorf("%d decisions were verified, want each of %d once, and %d were sent", verified, rows, len(l.sent))
	}
	c.stop(t)
}
