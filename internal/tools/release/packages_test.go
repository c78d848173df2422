package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// packed makes the packages of a version for amd64, with a script as the program, and returns the folder of both.
func packed(t *testing.T, tag string) string {
	t.Helper()
	dir, out := t.TempDir(), t.TempDir()
	program := filepath.Join(dir, "writ")
	write(t, program, "#!/bin/sh\necho writ "+tag+"\n")
	var beside []file
	for _, name := range []string{"LICENSE", "licenses.md", "completion/writ.bash", "completion/_writ", "completion/writ.fish", "man/writ.1"} {
		beside = append(beside, file{name, []byte(name + "\n"), 0o644})
	}
	r := release{root: "../../..", tag: tag, time: time.Unix(1_700_000_000, 0).UTC()}
	if err := r.packages("amd64", program, beside, dir, out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestPackages reads packages with the tools of Debian and Red Hat, and holds that two of one version have the same
// bytes.
func TestPackages(t *testing.T) {
	one, two := packed(t, "v1.2.3"), packed(t, "v1.2.3")
	const deb, rpm = "writ_1.2.3_amd64.deb", "writ-1.2.3-1.x86_64.rpm"
	for _, name := range []string{deb, rpm} {
		if read(t, filepath.Join(one, name)) != read(t, filepath.Join(two, name)) {
			t.Errorf("two packages %s differ", name)
		}
	}
	holds := func(want []string, command ...string) {
		t.Helper()
		if _, err := exec.LookPath(command[0]); err != nil {
			t.Logf("SKIPPED: there is no %s", command[0])
			return
		}
		out, err := output(exec.Command(command[0], command[1:]...))
		if err != nil {
			t.Error(err)
		}
		for _, line := range want {
			if !strings.Contains(out, line) {
				t.Errorf("%v prints no %q:\n%s", command, line, out)
			}
		}
	}
	files := []string{"/usr/bin/writ", "/usr/lib/systemd/system/writ.service", "/usr/share/man/man1/writ.1.gz",
		"/usr/share/doc/writ/copyright", "/etc/writ/writ.yaml"}
	holds(append(files, "/usr/share/zsh/vendor-completions/_writ"), "dpkg-deb", "-c", filepath.Join(one, deb))
	holds([]string{"/etc/writ/writ.yaml"}, "dpkg-deb", "-I", filepath.Join(one, deb), "conffiles")
	holds(append(files, "/usr/share/zsh/site-functions/_writ"), "rpm", "-qpl", filepath.Join(one, rpm))
	holds([]string{"/etc/writ/writ.yaml"}, "rpm", "-qpc", filepath.Join(one, rpm))
}

// TestService_IsHardened holds systemd's own score of the service to 2 of 10, where 0 is the best.
func TestService_IsHardened(t *testing.T) {
	program, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("SKIPPED: there is no systemd-analyze")
	}
	out, err := exec.Command(program, "security", "--offline=true", "--no-pager", "--threshold=20", "../../../deploy/package/writ.service").CombinedOutput()
	if err != nil {
		t.Errorf("the service may do more than it needs: %v\n%s", err, out)
	}
}

// inRoot installs, upgrades, removes and purges. It is run in a Debian that has nothing else.
const inRoot = `set -e
dpkg -i /one.deb
[ "$(writ version)" = 'writ v1.2.3' ]
[ "$(stat -c %U:%G:%a /etc/writ/writ.yaml)" = root:writ:640 ]
[ "$(stat -c %U:%G:%a /etc/writ)" = root:writ:750 ]
getent passwd writ | grep -q '/var/lib/writ:/usr/sbin/nologin$'
mkdir /var/lib/writ
echo history >/var/lib/writ/kept
echo 'log-level: warn' >>/etc/writ/writ.yaml
dpkg -i /two.deb </dev/null
[ "$(writ version)" = 'writ v1.3.0' ]
grep -q 'log-level: warn' /etc/writ/writ.yaml
dpkg -r writ
[ ! -e /usr/bin/writ ]
[ -e /etc/writ/writ.yaml ]
dpkg -P writ
[ ! -e /etc/writ ]
[ "$(cat /var/lib/writ/kept)" = history ]
[ -z "$(find /usr /etc -path '*writ*' ! -path '*rewrit*' ! -path '*write*')" ]
`

// TestPackages_InACleanDebian installs into a root that debootstrap made.
func TestPackages_InACleanDebian(t *testing.T) {
	if os.Getenv("WRIT_SOAK") == "" {
		t.Skip("SKIPPED: it takes long: set WRIT_SOAK=1")
	}
	if _, err := exec.LookPath("debootstrap"); err != nil || os.Getuid() != 0 {
		t.Skip("SKIPPED: it wants root and debootstrap")
	}
	root := filepath.Join(t.TempDir(), "root")
	if out, err := exec.Command("debootstrap", "--variant=minbase", "stable", root).CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: debootstrap gets no Debian: %v\n%s", err, out)
	}
	for name, dir := range map[string]string{"one.deb": packed(t, "v1.2.3"), "two.deb": packed(t, "v1.3.0")} {
		found, _ := filepath.Glob(filepath.Join(dir, "*.deb"))
		write(t, filepath.Join(root, name), read(t, found[0]))
	}
	if out, err := exec.Command("chroot", root, "sh", "-xc", inRoot).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
