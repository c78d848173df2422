package main

import (
	"net"
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

// inRoot installs, serves as the service does, upgrades, serves the same data, removes and purges. It is run in a Debian
// that has nothing else. ADDR and ADMIN_ADDR are addresses that nobody listens on.
const inRoot = `set -e
as='setpriv --reuid=writ --regid=writ --init-groups env HOME=/tmp/writ'
start() {
    $as $(sed -n 's/^ExecStart=//p' /usr/lib/systemd/system/writ.service) >/log 2>&1 &
    server=$!
    until writ status --url http://$ADDR >/dev/null 2>&1; do kill -0 $server || { cat /log; exit 1; }; sleep 0.2; done
}
stop() { kill $server; wait $server; }

dpkg -i /one.deb
[ "$(writ version | cut -d, -f1)" = 'writ v1.2.3' ]
[ "$(stat -c %U:%G:%a /etc/writ/writ.yaml)" = root:writ:640 ]
[ "$(stat -c %U:%G:%a /etc/writ)" = root:writ:750 ]
getent passwd writ | grep -q '/var/lib/writ:/usr/sbin/nologin$'
install -d -o writ -g writ -m 700 /var/lib/writ /tmp/writ # the first is what StateDirectory= makes
sed -i "s/^addr: .*/addr: $ADDR/; s/^admin-addr: .*/admin-addr: $ADMIN_ADDR/" /etc/writ/writ.yaml
echo 'log-level: warn' >>/etc/writ/writ.yaml
$as writ config check /etc/writ/writ.yaml
start
$as writ token operator --org demo --data /var/lib/writ | $as writ login --url http://$ADDR
cp -r /files /tmp/writ/files
chown -R writ /tmp/writ/files
$as writ push --yes /tmp/writ/files
$as writ decide --intent /intent.json --json >/before.json
$as writ verify --keys http://$ADDR/.well-known/jwks.json /before.json
stop

dpkg -i /two.deb </dev/null
[ "$(writ version | cut -d, -f1)" = 'writ v1.2.4' ]
grep -q 'log-level: warn' /etc/writ/writ.yaml
start
$as writ decide --intent /intent.json --json >/after.json
cmp /before.json /after.json
$as writ doctor --admin-url http://$ADMIN_ADDR
stop
$as writ verify --chain --data /var/lib/writ | grep ': whole: 1 chain, .* 1 decision'

dpkg -r writ
[ ! -e /usr/bin/writ ]
[ -e /etc/writ/writ.yaml ]
dpkg -P writ
[ ! -e /etc/writ ]
[ -s /var/lib/writ/keys.jwks ]
[ -z "$(find /usr /etc -path '*writ*' ! -path '*rewrit*' ! -path '*write*')" ]
`

// TestPackages_InACleanDebian installs the program itself into a root that debootstrap made.
func TestPackages_InACleanDebian(t *testing.T) {
	one := soak(t, t.TempDir(), "v1.2.3")
	if _, err := exec.LookPath("debootstrap"); err != nil || os.Getuid() != 0 {
		t.Skip("SKIPPED: it wants root and debootstrap")
	}
	root := filepath.Join(t.TempDir(), "root")
	if out, err := exec.Command("debootstrap", "--variant=minbase", "stable", root).CombinedOutput(); err != nil {
		t.Skipf("SKIPPED: debootstrap gets no Debian: %v\n%s", err, out)
	}
	for name, r := range map[string]release{"one.deb": one, "two.deb": soak(t, t.TempDir(), "v1.2.4")} {
		dir, out := t.TempDir(), t.TempDir()
		beside, program, err := r.beside(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.packages("amd64", program, beside, dir, out); err != nil {
			t.Fatal(err)
		}
		found, _ := filepath.Glob(filepath.Join(out, "*.deb"))
		write(t, filepath.Join(root, name), read(t, found[0]))
	}
	for name, source := range map[string]string{
		"files/payments.yaml": "policies/payments.yaml", "intent.json": "intents/payments/refund-small.json",
	} {
		write(t, filepath.Join(root, name), read(t, filepath.Join("../../../examples", source)))
	}
	cmd := exec.Command("chroot", root, "sh", "-xc", inRoot)
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "ADDR=" + free(t), "ADMIN_ADDR=" + free(t)}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// free returns an address that nobody listens on.
func free(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
