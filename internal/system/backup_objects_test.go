package system

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"writ.example/writ/storage/datadir"
)

// TestBackup_ToAnObjectStore runs the commands of docs/backup.md about object stores. versitygw keeps what restic
// sends, the machine is lost, and the restored store is whole up to the head at which the last backup ends.
func TestBackup_ToAnObjectStore(t *testing.T) {
	if !soaking() {
		t.Skip("SKIPPED without WRIT_SOAK=1: builds versitygw and restic for minutes")
	}
	t.Parallel()
	blocks := regexp.MustCompile("(?s)```bash\n(.*?)```").FindAllStringSubmatch(readText(t, "../../docs/backup.md"), -1)
	if len(blocks) != 3 {
		t.Fatalf("the page has %d blocks about object stores, want those that prepare, back up and restore", len(blocks))
	}
	tools, dir := buildObjectTools(t), t.TempDir()
	writ, err := released()
	must(t, err)
	must(t, os.Symlink(writ, filepath.Join(tools, "writ")))
	objects := serveObjects(t, tools)
	data, backups := datadir.Dir(filepath.Join(dir, "data")), filepath.Join(dir, "backups")
	p := start(t, data, "--demo", "--backup-dir", backups)
	run := func(block, day string) string {
		t.Helper()
		script := strings.NewReplacer("https://objects.example", objects, "$(date +%F)", day).Replace(blocks[0][1] + block)
		cmd := exec.CommandContext(t.Context(), "bash", "-euc", script)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "PATH="+tools+":"+os.Getenv("PATH"), "HOME="+dir, "WRIT_ADMIN_URL="+p.admin,
			"AWS_ACCESS_KEY_ID=root", "AWS_SECRET_ACCESS_KEY=secret-of-root", "AWS_DEFAULT_REGION=us-east-1")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		t.Logf("%s%s", block, out)
		return string(out)
	}
	exists := func(name string) bool {
		_, err := os.Stat(filepath.Join(dir, name))
		return err == nil
	}
	must(t, os.WriteFile(filepath.Join(dir, "restic-password"), []byte("long\n"), 0o600))
	run("restic init\n", "")
	run(blocks[1][1], "2026-11-27")
	old := time.Now().AddDate(0, 0, -5)
	must(t, os.Chtimes(filepath.Join(backups, "2026-11-27"), old, old))
	must(t, os.Mkdir(filepath.Join(backups, ".begun"), 0o700))
	last := run(blocks[1][1], "2026-11-28")
	if exists("backups/2026-11-27") || !exists("backups/2026-11-28") {
		t.Error("the commands of a night remove another backup than the old one")
	}

	p.kill(t)
	must(t, os.RemoveAll(string(data)))
	must(t, os.RemoveAll(backups))
	restored := run(blocks[2][1], "")
	head := regexp.MustCompile(`ends at head (\d+),`).FindStringSubmatch(last)
	if head == nil || !strings.Contains(restored, "data: whole: 1 chain, "+head[1]+" heads, ") {
		t.Errorf("the restored store is not whole up to the head of the backup, %q:\n%s", head, restored)
	}
	if !exists("restored/backups/2026-11-27") || exists("restored/backups/.begun") {
		t.Error("the object store lacks a backup, or has one that was not finished")
	}
}

// buildObjectTools builds the programs of internal/tools/objects, restic and versitygw, into a directory.
func buildObjectTools(t *testing.T) (bin string) {
	t.Helper()
	bin, module := t.TempDir(), filepath.Join("..", "tools", "objects")
	if out, err := exec.Command("go", "-C", module, "list", "-deps", "tool").CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: the modules of internal/tools/objects cannot be had: %v: %.500s", err, out)
	}
	build := exec.Command("go", "-C", module, "build", "-ldflags=-s -w", "-o", bin, "tool")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building restic and versitygw: %v\n%s", err, out)
	}
	return bin
}

// serveObjects starts an object store with one bucket, writ, and returns its URL.
func serveObjects(t *testing.T, tools string) string {
	t.Helper()
	root, addr := t.TempDir(), freeAddr(t)
	must(t, os.Mkdir(filepath.Join(root, "writ"), 0o700))
	startProgram(t, exec.Command(filepath.Join(tools, "versitygw"), "--access", "root", "--secret", "secret-of-root",
		"--port", addr, "posix", root), t.Output())
	waitFor(t, "the object store to listen", func() bool {
		conn, err := net.Dial("tcp", addr)
		return err == nil && conn.Close() == nil
	})
	return "http://" + addr
}
