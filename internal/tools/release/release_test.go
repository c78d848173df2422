package main

import (
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"aead.dev/minisign"
	cyclonedx "github.com/CycloneDX/cyclonedx-go"
)

// newTree returns a repository with one commit, in which commands run by git.
func newTree(t *testing.T) (r release, git func(args ...string) string) {
	t.Helper()
	r = release{root: t.TempDir()}
	git = func(args ...string) string {
		t.Helper()
		out, err := r.git(t.Context(), append([]string{"-c", "user.name=a", "-c", "user.email=a@b.invalid"}, args...)...)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	git("init", "-q")
	write(t, filepath.Join(r.root, "code"), "1")
	git("add", ".")
	git("commit", "-qm", "first")
	return r, git
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// wantError fails the test unless err names what is wrong.
func wantError(t *testing.T, err error, what string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), what) {
		t.Errorf("the error is %v, want one with %q", err, what)
	}
}

// TestSoaked holds that a release is made only of a tree on which make soak passed.
func TestSoaked(t *testing.T) {
	r, git := newTree(t)
	soak := filepath.Join(r.root, soakFile)
	wantError(t, r.soaked(t.Context()), "wants the output of make soak")

	first := git("rev-parse", "HEAD")
	write(t, soak, "revision "+first+"\nok rego\n")
	wantError(t, r.soaked(t.Context()), `the last "passed"`)
	write(t, soak, "revision "+strings.Repeat("0", 40)+"\npassed\n")
	wantError(t, r.soaked(t.Context()), "does not come from")

	write(t, soak, "revision "+first+"\nok rego\npassed\n")
	git("add", ".")
	git("commit", "-qm", "soaked")
	if err := r.soaked(t.Context()); err != nil {
		t.Errorf("a tree that passed is refused: %v", err)
	}
	write(t, filepath.Join(r.root, "code"), "2")
	git("commit", "-qam", "changed")
	wantError(t, r.soaked(t.Context()), "1 files have changed since make soak passed at "+first+", such as code")
}

// TestSoak_KeepsWhatPassed runs the script that make soak runs.
func TestSoak_KeepsWhatPassed(t *testing.T) {
	script, err := filepath.Abs("../soak")
	if err != nil {
		t.Fatal(err)
	}
	r, git := newTree(t)
	if err := os.MkdirAll(filepath.Join(r.root, "bench/results"), 0o755); err != nil {
		t.Fatal(err)
	}
	run := func(command string) error {
		cmd := exec.Command(script, "sh", "-c", command)
		cmd.Dir = r.root
		_, err := output(cmd)
		return err
	}
	if err := run("echo no; exit 1"); err == nil {
		t.Error("make soak passes if a test fails")
	}
	if _, err := os.Stat(filepath.Join(r.root, soakFile)); err == nil {
		t.Error("a soak that failed is kept")
	}
	write(t, filepath.Join(r.root, "code"), "2")
	if err := run("echo ok"); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(r.root, soakFile)); err == nil {
		t.Error("a soak of a tree with changes is kept")
	}
	git("checkout", "-q", "code")
	if err := run("echo 'ok  rego 2s'; echo more"); err != nil {
		t.Error(err)
	}
	git("add", ".")
	git("commit", "-qm", "soaked")
	if err := r.soaked(t.Context()); err != nil {
		t.Errorf("what the script writes is refused: %v", err)
	}
}

// TestIdentify holds that a release is made only of a commit with a tag, without changes.
func TestIdentify(t *testing.T) {
	r, git := newTree(t)
	_, err := identify(t.Context(), r.root)
	wantError(t, err, "no tag such as v1.2.3")
	git("tag", "v1.2.3")
	got, err := identify(t.Context(), r.root)
	if err != nil || got.version() != "1.2.3" || got.revision != git("rev-parse", "HEAD") || got.time.IsZero() {
		t.Errorf("identify = %+v, %v", got, err)
	}
	write(t, filepath.Join(r.root, "code"), "2")
	_, err = identify(t.Context(), r.root)
	wantError(t, err, "the tree has changes")
}

// newKey makes a key for tests, and returns the file of its public half.
func newKey(t *testing.T) (key minisign.PrivateKey, public string) {
	t.Helper()
	pub, key, err := minisign.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	text, err := pub.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	public = filepath.Join(t.TempDir(), "release.pub")
	write(t, public, string(text)+"\n")
	return key, public
}

// TestSign signs with a fresh key, verifies, and changes what was signed.
func TestSign(t *testing.T) {
	key, public := newKey(t)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "b"), "two")
	write(t, filepath.Join(dir, "a"), "one")
	r := release{tag: "v1.2.3", revision: "abc"}
	if err := r.sign(dir, key); err != nil {
		t.Fatal(err)
	}
	sums, signature := read(t, filepath.Join(dir, sumsFile)), read(t, filepath.Join(dir, sumsFile+".minisig"))
	if want := "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed  a\n" +
		"3fc4ccfe745870e2c0d99f71f30ff0656c8dedd41cc1d7d3d376b0dbe685e2f3  b\n"; sums != want {
		t.Errorf("the sums are\n%s, want\n%s", sums, want)
	}
	if !strings.Contains(signature, "trusted comment: writ v1.2.3, commit abc\n") {
		t.Errorf("the signature does not say which release it is of:\n%s", signature)
	}
	pub, err := minisign.PublicKeyFromFile(public)
	if err != nil {
		t.Fatal(err)
	}
	if !minisign.Verify(pub, []byte(sums), []byte(signature)) {
		t.Error("the signature does not verify")
	}
	if minisign.Verify(pub, []byte(strings.Replace(sums, "7692", "7693", 1)), []byte(signature)) {
		t.Error("the signature verifies other sums")
	}
	if minisign.Verify(pub, []byte(sums), []byte(strings.Replace(signature, "v1.2.3", "v1.2.4", 1))) {
		t.Error("the signature verifies as one of another release")
	}
	program, err := exec.LookPath("minisign")
	if err != nil {
		t.Skip("SKIPPED the verification by minisign: it is not installed")
	}
	if out, err := exec.Command(program, "-V", "-p", public, "-m", filepath.Join(dir, sumsFile)).CombinedOutput(); err != nil {
		t.Errorf("minisign refuses the signature: %v\n%s", err, out)
	}
}

// TestReadKey refuses a key that nobody could verify with, and a wrong password.
func TestReadKey(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED in short mode: minisign makes each guess of a password take seconds")
	}
	secret, public := filepath.Join(t.TempDir(), "key"), filepath.Join(t.TempDir(), "release.pub")
	if err := makeKey(secret, "word", public); err != nil {
		t.Fatal(err)
	}
	if _, err := readKey(secret, "word", public); err != nil {
		t.Errorf("the key that was made is refused: %v", err)
	}
	_, err := readKey(secret, "word", public+".absent")
	wantError(t, err, "make release-key")
	_, other := newKey(t)
	_, err = readKey(secret, "word", other)
	wantError(t, err, "is not the key of")
	_, err = readKey(secret, "other", public)
	wantError(t, err, "RELEASE_PASSWORD")
	if err := makeKey(secret, "word", public); !os.IsExist(err) {
		t.Errorf("a key is overwritten: %v", err)
	}
	if info, err := os.Stat(secret); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the secret key is open to others: %v, %v", info.Mode(), err)
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// soak skips a test that takes long unless WRIT_SOAK is set. It returns a release of the checkout's commit, cloned into
// dir and tagged there.
func soak(t *testing.T, dir, tag string) release {
	t.Helper()
	if os.Getenv("WRIT_SOAK") == "" {
		t.Skip("SKIPPED: it takes long: set WRIT_SOAK=1")
	}
	clone := filepath.Join(dir, "clone")
	if _, err := output(exec.Command("git", "clone", "-q", "../../..", clone)); err != nil {
		t.Fatal(err)
	}
	if _, err := output(exec.Command("git", "-C", clone, "tag", tag)); err != nil {
		t.Fatal(err)
	}
	r, err := identify(t.Context(), clone)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestRelease_EveryTarget walks through "Making a release" of docs/install.md in a clone, from the key to make release.
// It runs what this machine can run, and makes the release again, which must have the same bytes.
func TestRelease_EveryTarget(t *testing.T) {
	clone := soak(t, t.TempDir(), "v0.0.1").root
	git := func(args ...string) string {
		t.Helper()
		args = append([]string{"-C", clone, "-c", "user.name=a", "-c", "user.email=a@b.invalid"}, args...)
		out, err := output(exec.Command("git", args...))
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	made := func(target string) (string, error) {
		cmd := exec.Command("make", "-C", clone, target)
		cmd.Env = append(os.Environ(), "RELEASE_KEY="+filepath.Join(filepath.Dir(clone), "key"), "RELEASE_PASSWORD=word")
		return output(cmd)
	}
	if _, err := made("release-key"); err != nil {
		t.Fatal(err)
	}
	git("add", publicKeyFile)
	git("commit", "-qm", "key")
	if _, err := made("release"); err == nil {
		t.Error("a release is made of a tree on which make soak did not pass")
	}
	write(t, filepath.Join(clone, soakFile), "revision "+git("rev-parse", "HEAD")+"\nok\npassed\n")
	git("add", soakFile)
	git("commit", "-qm", "soaked")
	git("tag", "v0.0.2")
	said, err := made("release")
	if err != nil {
		t.Fatal(err)
	}
	t.Log(said)
	r, err := identify(t.Context(), clone)
	if err != nil || r.tag != "v0.0.2" {
		t.Fatalf("identify = %+v, %v", r, err)
	}
	out := filepath.Join(clone, "bin/release")
	runs(t, r, out)
	for _, one := range targets {
		if found, _ := filepath.Glob(filepath.Join(out, "writ_*_"+one.os+"_"+one.arch+".*")); len(found) < 2 {
			t.Errorf("%v has the files %v, want an archive and a list of its modules", one, found)
		}
	}
	cmd := exec.Command("sha256sum", "-c", "--quiet", sumsFile)
	cmd.Dir = out
	if _, err := output(cmd); err != nil {
		t.Error(err)
	}
	pub, err := minisign.PublicKeyFromFile(filepath.Join(clone, publicKeyFile))
	if err != nil {
		t.Fatal(err)
	}
	if !minisign.Verify(pub, []byte(read(t, filepath.Join(out, sumsFile))), []byte(read(t, filepath.Join(out, sumsFile+".minisig")))) {
		t.Error("the signature does not verify")
	}
	bills(t, out)
	r.sameBytes(t, out)
}

// sameBytes makes the release again, from another clone. It compares all targets with packages that were compiled
// before, so what is repeated is the linking and packing. It also compares one target with every package, of the
// standard library too, compiled from nothing.
func (r release) sameBytes(t *testing.T, out string) {
	t.Helper()
	key, _ := newKey(t)
	again := r
	again.root = filepath.Join(t.TempDir(), "elsewhere")
	if _, err := output(exec.Command("git", "clone", "-q", r.root, again.root)); err != nil {
		t.Fatal(err)
	}
	first := read(t, filepath.Join(out, sumsFile))
	whole := filepath.Join(t.TempDir(), "whole")
	if err := again.make(t.Context(), whole, targets, key); err != nil {
		t.Fatal(err)
	}
	if got := read(t, filepath.Join(whole, sumsFile)); got != first {
		t.Errorf("two releases of one commit differ:\n%s\n%s", first, got)
	}
	t.Setenv("GOCACHE", filepath.Join(t.TempDir(), "cache"))
	one := filepath.Join(t.TempDir(), "one")
	if err := again.make(t.Context(), one, targets[:1], key); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(read(t, filepath.Join(one, sumsFile))) {
		// The image of all targets has two processors.
		if !strings.Contains(line, again.imageFile()) && !strings.Contains(first, line) {
			t.Errorf("compiled from nothing, a file differs: %s", line)
		}
	}
}

// bills holds that each list of modules is CycloneDX, and has what the program links.
func bills(t *testing.T, out string) {
	t.Helper()
	for _, one := range targets {
		names, _ := filepath.Glob(filepath.Join(out, "writ_*_"+one.os+"_"+one.arch+".cdx.json"))
		if len(names) != 1 {
			t.Errorf("%v has the lists %v", one, names)
			continue
		}
		bill(t, names[0])
	}
}

// bill holds that a list of modules is CycloneDX, and has what writ links.
func bill(t *testing.T, name string) {
	t.Helper()
	list := new(cyclonedx.BOM)
	decoder := cyclonedx.NewBOMDecoder(strings.NewReader(read(t, name)), cyclonedx.BOMFileFormatJSON)
	err := decoder.Decode(list)
	if err != nil || list.Components == nil || list.Metadata.Component.Name != "writ.example/writ" {
		t.Errorf("%s is no list of writ: %v", name, err)
		return
	}
	for _, module := range []string{"github.com/gofiber/fiber/v2", "github.com/cockroachdb/pebble/v2", "std"} {
		if !slices.ContainsFunc(*list.Components, func(c cyclonedx.Component) bool {
			return c.Name == module && c.Version != "" && c.PackageURL != "" && (c.Hashes != nil || module == "std")
		}) {
			t.Errorf("%s lacks %s, which writ links", name, module)
		}
	}
}

// TestBill builds the program for one target and lists its modules.
func TestBill(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED in short mode: it compiles writ")
	}
	dir, r := t.TempDir(), release{root: "../../..", tag: "v1.2.3"}
	program, name := filepath.Join(dir, "writ"), filepath.Join(dir, "writ.cdx.json")
	if err := r.build(t.Context(), target{runtime.GOOS, runtime.GOARCH}, program); err != nil {
		t.Fatal(err)
	}
	if err := r.bill(t.Context(), program, name); err != nil {
		t.Fatal(err)
	}
	bill(t, name)
}

// TestChart packs the Helm chart with the version of a release.
func TestChart(t *testing.T) {
	dir := t.TempDir()
	r := release{root: "../../..", tag: "v1.2.3"}
	if err := r.chart(filepath.Join(dir, "writ-1.2.3.tgz")); err != nil {
		t.Fatal(err)
	}
	text, err := output(exec.Command("tar", "-C", dir, "-xOf", filepath.Join(dir, "writ-1.2.3.tgz"), "writ/Chart.yaml"))
	if err != nil || !strings.Contains(text, "\nversion: 1.2.3\nappVersion: 1.2.3\n") {
		t.Errorf("the chart is %v\n%s", err, text)
	}
}

// runs holds that the program for this machine in the release says what it is.
func runs(t *testing.T, r release, out string) {
	t.Helper()
	name := fmt.Sprintf("writ_%s_%s_%s", r.version(), runtime.GOOS, runtime.GOARCH)
	dir := t.TempDir()
	if _, err := output(exec.Command("tar", "-C", dir, "-xf", filepath.Join(out, name+".tar.gz"))); err != nil {
		t.Fatal(err)
	}
	said, err := output(exec.Command(filepath.Join(dir, name, "writ"), "version"))
	if err != nil || !strings.HasPrefix(said, "writ "+r.tag+", revision "+r.revision) {
		t.Errorf("writ version prints %q, %v, want %s and revision %s", said, err, r.tag, r.revision)
	}
	for _, beside := range []string{"LICENSE", "licenses.md", "completion/_writ", "man/writ.1", "man/writ-serve.1"} {
		if _, err := os.Stat(filepath.Join(dir, name, beside)); err != nil {
			t.Errorf("the archive lacks %s", beside)
		}
	}
}
