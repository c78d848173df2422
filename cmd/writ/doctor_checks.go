package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"writ.example/writ/engine"
	"writ.example/writ/examples"
	"writ.example/writ/storage/datadir"
	"writ.example/writ/storage/embedded"
	"writ.example/writ/storage/mongodb"
	"writ.example/writ/storage/receipt"
)

// clockNow is the clock of the doctor.
func clockNow() time.Time { return time.Now() }

// heads are the signed heads of a history.
type heads interface {
	Chains(ctx context.Context, f func(end receipt.Chain) error) error
	Heads(ctx context.Context, chain [16]byte, from uint64, f func(receipt.SignedHead) error) error
}

// examiner examines a server, or the files of a server that does not run.
type examiner struct {
	c   *serveCmd
	now func() time.Time

	node *node // nil if no server runs

	// The next fields are of a server that does not run.
	config    string // the file of its settings, or ""
	settings  int    // how many it has
	configErr error
	storeErr  error // why there is no history

	// history is a store, or nil if it cannot be read.
	history any
}

// all makes each check.
func (e *examiner) all(ctx context.Context) (all []finding) {
	for _, one := range []struct {
		name  string
		check func(context.Context) finding
	}{
		{"configuration", e.configuration}, {"store", e.store}, {"keys", e.keys}, {"clock", e.clock}, {"disk", e.disk},
		{"permissions", e.permissions}, {"replicas", e.replicas}, {"denial", e.denial},
	} {
		f := one.check(ctx)
		f.Check = one.name
		all = append(all, f)
	}
	return all
}

// configuration reads the settings again, as a restart would.
func (e *examiner) configuration(context.Context) finding {
	const mend = "mend what it names: writ config check FILE tries a file"
	if e.node == nil {
		switch {
		case e.config == "":
			return notExamined("no file of settings was named: --config names it")
		case e.configErr != nil:
			return failed(mend, "%v", e.configErr)
		}
		if err := e.c.checkFiles(); err != nil {
			return failed(mend, "%s: %v", e.config, err)
		}
		return found("%s: %d settings", e.config, e.settings)
	}
	if e.node.reloader == nil {
		return found("it serves, and does not read its settings again")
	}
	changed, waiting, err := e.node.reloader.unread()
	switch {
	case err != nil:
		return failed(mend+"; until then the settings of the start hold", "a restart would fail: %v", err)
	case len(waiting) > 0:
		return warned("restart the server", "the settings that were changed since the start wait for a restart: %s",
			texts(waiting))
	case len(changed) > 0:
		return warned("send SIGHUP to the server, or POST /reload to its admin address",
			"the settings that were changed since the start wait for a reload: %s", texts(changed))
	case e.node.plainHTTP(e.c):
		return warned(doTLS, "other machines reach the API without TLS, at %s", e.node.api.Addr())
	}
	return found("as its flags, variables and files say; %s", e.node.url())
}

// store says whether decisions can be kept.
func (e *examiner) store(ctx context.Context) finding {
	const restore = "docs/backup.md says what to do after damage"
	if e.node != nil {
		if err := e.node.service.Healthy(ctx); err != nil {
			return failed("nothing is decided until this ends: docs/alerts.md#writrefuses", "%v", err)
		}
		if b, ok := e.node.store.(interface{ Building() string }); ok && b.Building() != "" {
			return warned("wait: it ends by itself", "%s", b.Building())
		}
		if l, ok := e.node.store.(interface{ Late() error }); ok && l.Late() != nil {
			return warned("docs/mongodb.md#sharded-clusters", "%v", l.Late())
		}
		return found("%s: it commits", e.c.Store)
	}
	switch {
	case errors.Is(e.storeErr, fs.ErrNotExist):
		return warned("name another data directory by --data; a start makes a store here", "there is no store in %s",
			e.c.Data)
	case e.storeErr != nil && e.c.Store == "mongodb":
		return failed("mend what it names: docs/mongodb.md", "%v", e.storeErr)
	case e.storeErr != nil:
		return failed("if a server runs, ask it: writ doctor --admin-url URL; else "+restore, "%v", e.storeErr)
	}
	if r, ok := e.history.(*embedded.ReadOnly); ok {
		if err := r.CheckTip(); err != nil {
			return failed(restore, "%v", err)
		}
		return found("embedded: whole up to the tip that was noted; writ verify --chain --data %s proves all of it",
			e.c.Data)
	}
	return found("%s: it can be read; writ verify --chain proves all of it", e.c.Store)
}

// keys reads the files of keys, and compares the signing key with the public ones.
func (e *examiner) keys(context.Context) finding {
	const lost = "put it back from a backup: docs/lost-keys.md"
	signing, err := datadir.ReadSigning(cmp.Or(e.c.SigningKey, e.c.Data.SigningKey()))
	if missing := e.c.missing(e.c.Data); len(missing) > 0 {
		var names []string
		for _, m := range missing {
			names = append(names, m.file+", which "+m.use)
		}
		return failed(lost+"; if this is a first start, it makes them", "missing: %s", texts(names))
	}
	if err != nil {
		return failed(lost, "%v", err)
	}
	if _, err := e.c.Data.Secret(e.c.OperatorSecret); err != nil {
		return failed(lost, "%v", err)
	}
	if _, err := e.c.Data.ScrubKeys(e.c.ScrubKey); err != nil {
		return failed(lost, "%v", err)
	}
	public, err := e.public()
	if err != nil {
		return failed("docs/lost-keys.md", "%v", err)
	}
	signs := signing.At(e.now())
	if !slices.Contains(public.IDs(), signs.KeyID()) {
		return failed("start the server again: it publishes the key", "%s signs, and is not published", signs.KeyID())
	}
	if signing.Next != nil && signs != signing.Next {
		if !slices.Contains(public.IDs(), signing.Next.KeyID()) {
			return failed("start the server: it publishes the key", "%s signs from %s on, and is not published",
				signing.Next.KeyID(), signing.From.Format(time.RFC3339))
		}
		return found("%s signs, and %s signs from %s on; %d are published", signs.KeyID(), signing.Next.KeyID(),
			signing.From.Format(time.RFC3339), len(public.IDs()))
	}
	return found("%s signs; %d published", signs.KeyID(), len(public.IDs()))
}

// public returns the keys that are published.
func (e *examiner) public() (receipt.Keys, error) {
	if e.node != nil {
		return receipt.ParseKeys(e.node.jwks())
	}
	data, err := os.ReadFile(e.c.Data.JWKS())
	if err != nil {
		return receipt.Keys{}, err
	}
	keys, err := receipt.ParseKeys(data)
	if err != nil {
		return keys, &inputError{e.c.Data.JWKS(), err}
	}
	return keys, nil
}

// maxAhead is how far a clock may stand before the newest decision. The stores have the same limit.
const maxAhead = 30 * time.Second

// clock compares the clock with the newest signed head, and asks the system whether it is kept.
func (e *examiner) clock(ctx context.Context) finding {
	const set = "set the clock, and have it kept by NTP: it dates receipts"
	h, ok := e.history.(heads)
	if !ok {
		return notExamined("there is no history to compare it with")
	}
	newest := int64(0)
	err := h.Chains(ctx, func(end receipt.Chain) error {
		return h.Heads(ctx, end.ID, end.Seq, func(s receipt.SignedHead) error {
			newest = max(newest, s.UnixMilli)
			return nil
		})
	})
	switch behind := time.UnixMilli(newest).Sub(e.now()); {
	case err != nil:
		return failed("see store", "reading the newest decision: %v", err)
	case behind > maxAhead:
		return failed(set+"; if it is right and was ahead then, wait until it has caught up",
			"it stands %v before the newest decision", behind.Round(time.Second))
	}
	if kept, known := clockKept(); known && !kept {
		return warned("have it kept by NTP, such as by chrony or systemd-timesyncd: it dates receipts",
			"%s; the system says that nothing keeps it", e.now().UTC().Format(time.RFC3339))
	}
	return found("%s, not before the newest decision", e.now().UTC().Format(time.RFC3339))
}

// lowSpace is when the alert WritStoreSpace fires.
const lowSpace = 1 << 30

// disk looks for free space where writ writes.
func (e *examiner) disk(context.Context) finding {
	var said []string
	worst := found("")
	for _, dir := range []string{string(e.c.Data), e.c.BackupDir} {
		if dir == "" {
			continue
		}
		free, reserve, err := embedded.Space(dir)
		if errors.Is(err, fs.ErrNotExist) && dir == e.c.BackupDir {
			continue // the first backup makes it
		}
		if err != nil {
			return failed("make the directory, or name another one by --data", "%v", err)
		}
		said = append(said, fmt.Sprintf("%s: %d MiB free", dir, free>>20))
		const do = "free space beside it, or enlarge the file system: docs/disk-full.md"
		switch {
		case free < reserve && dir == string(e.c.Data):
			worst = failed(do, "")
			said = append(said, fmt.Sprintf("decisions are refused below %d MiB", reserve>>20))
		case free < lowSpace && worst.State == fine:
			worst = warned(do, "")
		}
	}
	worst.Found = texts(said)
	return worst
}

// permissions looks for secrets that others can read.
func (e *examiner) permissions(context.Context) finding {
	exposed := e.c.exposed(e.c.Data)
	exposed = append(exposed, datadir.Exposed(string(e.c.Data))...)
	if e.c.BackupDir != "" {
		exposed = append(exposed, datadir.Exposed(e.c.BackupDir)...)
	}
	if len(exposed) > 0 {
		return failed("chmod go= it; if somebody has read a key, rotate it: docs/rotate-keys.md",
			"others than the owner reach %s", texts(exposed))
	}
	return found("the owner alone reaches the data directory, its secrets and backups")
}

// replicas compares the versions of the processes on one store.
func (e *examiner) replicas(ctx context.Context) finding {
	own := readBuilt().String()
	if e.c.Store == "embedded" {
		if e.node == nil {
			return notExamined("no server was asked; this is " + own)
		}
		return found("one, %s", own)
	}
	shared, ok := e.history.(interface {
		Replicas(ctx context.Context) ([]mongodb.Replica, error)
	})
	if !ok {
		return notExamined("the database cannot be read")
	}
	all, err := shared.Replicas(ctx)
	if err != nil {
		return failed("see store", "%v", err)
	}
	var names, versions []string
	for _, r := range all {
		names = append(names, r.Name+": "+r.Version)
		if !slices.Contains(versions, r.Version) {
			versions = append(versions, r.Version)
		}
	}
	switch {
	case len(versions) > 1:
		return warned("finish the upgrade: docs/upgrade.md", "%d versions run: %s", len(versions), texts(names))
	case len(all) == 0:
		return found("none runs; this is %s", own)
	}
	return found("%d: %s", len(all), texts(names))
}

// denial has the engine decide the examples that must be denied.
func (e *examiner) denial(context.Context) finding {
	set, err := examples.Load()
	if err != nil {
		return failed("install writ again", "%v", err)
	}
	rules := engine.CompileRules(set.Rules, engine.Options{})
	denied := 0
	for i, c := range set.Cases {
		p, err := engine.CompilePolicy(set.Policies[c.Policy])
		if err != nil {
			return failed("install writ again", "%v", err)
		}
		got := engine.Evaluate(p, rules, &engine.Input{Intent: set.Intents[i], DecidedAt: engine.ClockTime(e.now())})
		if c.Want == engine.Deny && got.Decision != engine.Deny {
			return failed("stop the server, and install writ again: its engine allows what it must deny",
				"the example %s was decided %v, and must be denied", c.Name, got.Decision)
		}
		if c.Want == engine.Deny {
			denied++
		}
	}
	if e.c.Core.URL != "" {
		return warned("ask the core for what it must deny, with the credential of an agent",
			"the built-in engine denies %d examples, but an external core decides", denied)
	}
	return found("%d examples that must be denied are denied", denied)
}
