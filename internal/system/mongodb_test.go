package system

import (
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"writ.example/writ/internal/freeze"
	"writ.example/writ/storage/datadir"
	"writ.example/writ/storage/mongodb/mongotest"
)

func TestMongoDB_FlagsOfOneStore(t *testing.T) {
	for _, flags := range [][]string{
		{"--store=mongodb"}, {"--mongodb-uri=mongodb://h/"}, {"--store=mongodb", "--mongodb-uri=mongodb://h/", "--audit-ack=queued"},
		{"--store=mongodb", "--mongodb-uri=mongodb://h/", "--accept-rollback=1"}, {"--store=other"},
	} {
		p, ready := launch(t, datadir.Dir(t.TempDir()), flags...)
		if <-ready {
			t.Errorf("writ serve %v serves, want a refusal", flags)
		}
		if text := p.stderr.String(); !strings.Contains(text, "--store") && !strings.Contains(text, "--mongodb-uri") {
			t.Errorf("writ serve %v says %q, want what to give", flags, text)
		}
	}
}

// TestMongoDB_AFrozenReplicaExits freezes a process until the other replicas treat it as dead. When
// the process continues, it must decide nothing. It must log the reason and exit, so that it is
// started again.
func TestMongoDB_AFrozenReplicaExits(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED in short mode: waits until a replica is given up")
	}
	set := mongotest.For(t, 1)
	data, token := newData(t)
	flags := []string{"--store=mongodb", "--mongodb-uri", set.URI()}
	a, b := start(t, data, flags...), start(t, data, flags...)
	register(t, a.url, token)
	operator := newClient(t, a.url, token)
	time.Sleep(4 * time.Second) // until each may treat the other as dead
	freeze.Process(t, b.cmd.Process)
	agent := operator.newAgent(t, "bot")
	operator.setStatus(t, agent, "disabled")
	must(t, b.cmd.Process.Signal(syscall.SIGCONT))
	select {
	case <-b.done:
	case <-time.After(patience):
		t.Fatalf("the replica still runs after %v", patience)
	}
	if code := b.cmd.ProcessState.ExitCode(); code != exitFailed {
		t.Errorf("exit code %d, want %d", code, exitFailed)
	}
	if text := b.stderr.String(); !strings.Contains(text, "was given up: start it again") {
		t.Errorf("it says %q, want why it ends", text)
	}
	a.stop(t)
}

// TestMongoDB_Doctor examines replicas that run, a database without replicas and one that does not answer.
func TestMongoDB_Doctor(t *testing.T) {
	t.Parallel()
	set := mongotest.For(t, 1)
	data, _ := newData(t)
	mongo := []string{"--store=mongodb", "--mongodb-uri", set.URI()}
	doctor := func(want int, lines []string, args ...string) {
		t.Helper()
		out, stderr, code := output(t, command(t, append([]string{"doctor"}, args...)...))
		if code != want {
			t.Errorf("writ doctor %v exits %d, want %d: %s", args, code, want, stderr)
		}
		for _, line := range lines {
			if !regexp.MustCompile("(?m)" + line).MatchString(out) {
				t.Errorf("writ doctor %v says\n%s\nwant %s", args, out, line)
			}
		}
	}
	a, b := start(t, data, mongo...), start(t, data, mongo...)
	for _, p := range []*process{a, b} {
		doctor(exitOK, []string{`^ok +store +mongodb: it commits$`, `^ok +keys +\S+ signs; 1 published$`,
			`^not examined +clock |^(ok|warning) +clock `, `^ok +replicas +2: `}, "--admin-url", p.admin)
	}
	a.stop(t)
	b.stop(t)
	doctor(exitOK, []string{`^ok +store +mongodb: it can be read; writ verify --chain proves all of it$`,
		`^ok +replicas +none runs; this is writ `}, append(mongo, "--data", string(data))...)
	must(t, set.Kill(0))
	doctor(exitFailed, []string{`^failure +store +.*the replica set had no primary.*start a majority of its members`, `^ +do: mend what it names: docs/mongodb.md$`,
		`^ok +keys `, `^not examined +replicas +the database cannot be read$`},
		"--store=mongodb", "--mongodb-uri", set.URI()+"&serverSelectionTimeoutMS=300", "--data", string(data))
}

// TestMongoDB_DoctorLateStream delays the stream of changes of a server. The doctor says that it is late, and what to
// set, until it is not.
func TestMongoDB_DoctorLateStream(t *testing.T) {
	t.Parallel()
	set, stream := mongotest.LateFor(t)
	data, token := newData(t)
	p := start(t, data, "--store=mongodb", "--mongodb-uri", set.URI()+"&appName="+stream.App)
	register(t, p.url, token)
	said := ""
	says := func(line string) func() bool {
		return func() bool {
			out, stderr, code := output(t, command(t, "doctor", "--admin-url", p.admin))
			if code != exitOK {
				t.Fatalf("writ doctor exits %d: %s%s", code, out, stderr)
			}
			said = out
			return regexp.MustCompile("(?m)" + line).MatchString(out)
		}
	}
	waitFor(t, "a doctor that finds nothing", says(`^ok +store +mongodb: it commits$`))
	stream.By(5 * time.Second)
	waitFor(t, "word of the late stream", says(`^warning +store +the stream of changes is late by \d.*set periodicNoopIntervalSecs to 1`))
	if !strings.Contains(said, "do: docs/mongodb.md#sharded-clusters\n") {
		t.Errorf("writ doctor says\n%s\nwant what to do", said)
	}
	stream.By(0)
	waitFor(t, "the end of it", says(`^ok +store +mongodb: it commits$`))
	p.stop(t)
}

// TestMongoDB_NoPrimary checks the error of serve when the replica set has no primary. The error
// must tell the operator what to do, without any credential.
func TestMongoDB_NoPrimary(t *testing.T) {
	uri := "mongodb://walter:hunter2@127.0.0.1:1/?replicaSet=rs&serverSelectionTimeoutMS=300"
	p, ready := launch(t, datadir.Dir(t.TempDir()), "--store=mongodb", "--mongodb-uri", uri)
	if <-ready {
		t.Fatal("writ serve without a primary serves")
	}
	text := p.stderr.String()
	for _, want := range []string{"opening the store: MongoDB: the replica set had no primary", "start a majority of its members, or correct the URI", "connection refused"} {
		if !strings.Contains(text, want) {
			t.Errorf("writ serve without a primary says %q, want %q", text, want)
		}
	}
	if strings.Contains(text, "hunter2") {
		t.Errorf("writ serve says %q, want no password", text)
	}
}
