package system

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFromHistory_SeedsASuite checks that a suite from a server's history passes, except for one
// case. That case depends on a metadata value, which the history does not store.
func TestFromHistory_SeedsASuite(t *testing.T) {
	data, token := newData(t)
	dir := t.TempDir()
	p := start(t, data, "--demo")
	defer p.stop(t)
	writ := func(args ...string) (string, string, int) {
		cmd := command(t, args...)
		cmd.Env, cmd.Dir = append(os.Environ(), "WRIT_URL="+p.url, "WRIT_API_KEY="+token), dir
		return output(t, cmd)
	}
	text, notes, code := writ("suite-from-history", "--n", "1000")
	if code != exitOK || !strings.Contains(notes, "decisions are left out") {
		t.Fatalf("writ suite-from-history = exit code %d, %s", code, notes)
	}
	must(t, os.WriteFile(filepath.Join(dir, "history_test.yaml"), []byte(text), 0o666))
	out, notes, code := writ("test", "history_test.yaml", "--rego")
	const rests = "deploy.rollout k8s/prod/web rule.deny" // the metadata, which is missing, says that there is a freeze
	if code != exitFailed || strings.Count(out, ": FAIL ") != 1 || !strings.Contains(out, rests) || strings.Count(out, " hold\n") != 4 {
		t.Errorf("the suite should hold but for %s: exit code %d\n%s%s", rests, code, out, notes)
	}
	if few, _, _ := writ("suite-from-history", "--n", "3"); strings.Count(few, `"want"`) != 3 {
		t.Errorf("--n 3 writes\n%s", few)
	}
	if _, notes, code := writ("suite-from-history", "--url", "nowhere"); code != exitUsage || !strings.Contains(notes, "--url") {
		t.Errorf("without a server: exit code %d, %s", code, notes)
	}
}
