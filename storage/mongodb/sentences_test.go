package mongodb

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"writ.example/writ/storage"
	"writ.example/writ/storage/ledger"
	"writ.example/writ/storage/ledger/ledgertest"
	"writ.example/writ/storage/mongodb/mongotest"
	"writ.example/writ/storage/receipt"
	"writ.example/writ/storage/storagetest"
)

// sentences are what must stay true of a restore, the fence, the order of changes and freshness, with the tests that
// fail where it does not. A test is a function, with a part of its cases after a slash, or a case of storagetest.
var sentences = map[string][]string{
	// Restore
	"a number does not tell that a database went back, since the counter may have grown past it": {"TestRestore_EndsWhoUsedTheDatabase/and it grew on"},
	"an epoch tells a counter that was made anew, and not a restore":                             {"TestRenew_ComparesTheDatabase/the epoch", "TestRestore_EndsWhoUsedTheDatabase/its documents"},
	"each change row has a random id":                                                            {"TestRenew_ComparesTheDatabase/the row heard last", "TestBarrier_RefusesWhereMoreWasHeard"},
	"a renewal compares and sets the beat written last":                                          {"TestRenew_ComparesTheDatabase/the beat", "TestRestore_EndsWhoUsedTheDatabase/its replicas", "TestRenew_AfterAnUnknownOutcome"},
	"with it are read the epoch, the counter, the row and tip":                                   {"TestRenew_ComparesTheDatabase/the order", "TestRenew_ComparesTheDatabase/the head", "TestRenew_ComparesTheDatabase/a trimmed row"},
	"anything other, smaller or gone is EverythingChanged, and nothing is decided any more":      {"TestRestore_EndsWhoUsedTheDatabase/lost its counter", "TestRenew_ComparesTheDatabase/the counter is gone"},
	"then a replica exits with the reason":                                                       {"restoredUnderReplicas"},
	"an event of a number already heard is the same":                                             {"TestRestore_EndsWhoUsedTheDatabase/and it grew on"},
	"Barrier refuses where a live slot has heard more":                                           {"TestBarrier_RefusesWhereMoreWasHeard", "TestBarrier_AfterNothingWasWritten", "TestBarrier_WhereSlotsAreRestored"},
	"Barrier reads the counters after the slots":                                                 {"TestBarrier_ReadsTheCountersAfterTheSlots"},
	"no head follows a gap that a restore has made":                                              {"TestAppend_AfterARestore"},
	"a beat proves that the slot was kept, whichever was heard":                                  {"TestRenew_AfterAnUnknownOutcome"},

	// The fence
	"a slot is taken by comparing and setting its beat":       {"TestGiveUp_NotOfANewBeat", "TestGiveUp_ByTheOwnClock"},
	"the sessions of the dead are ended":                      {"TestTransactions_OfTheDeadBlockNobody", "TestGiveUp_OfAnotherUser/with the privilege"},
	"without the right to end them, Barrier waits":            {"TestGiveUp_OfAnotherUser/without it"},
	"a transaction from before the fence stores nothing":      {"TestFence_OfATransactionFromBefore", "TestFence_AtEachCommand"},
	"what the zombie has committed before it is counted":      {"TestMeters_CountBehindTheHeads", "TestFence_AtEachCommand"},
	"the places of the dead are free, then dead is cleared":   {"TestAppend_OfADeadHandleIsInNobodysWay", "TestFence_LeavesNoHead"},
	"a closed chain goes on without a gap":                    {"TestFence_OfATransactionFromBefore", "TestReplicas_Zombie"},
	"a closing row is no head to verify, Chains and Tip":      {"TestFence_LeavesNoHead"},
	"who finds a head of another holder in its chain is lost": {"TestFence_FindsAnotherHolder", "TestFence_AtEachCommand"},
	"an update of the dead holds locks for a while only":      {"TestUpdate_OfADeadHandleIsInNobodysWay", "TestGiveUp_OfAnotherUser/without it"},

	// The order of changes
	"a counter for each organization orders what belongs together": {"a revision is greater than every earlier one of its organization, whoever made it"},
	"Barrier goes by the order of the stream":                      {"TestBarrier_Marks", "Barrier waits for a live handle that has not heard"},
	"after an update that wrote nothing Barrier waits for a mark":  {"TestBarrier_Marks", "Barrier waits for a change that an Update has found, so that it wrote nothing"},
	"slots acknowledge what their watchers were told":              {"TestBarrier_WaitsUntilWatchersWereTold"},
	"a broken stream is resumed at its time":                       {"TestWatch_OfABrokenStream/and is resumed", "TestWatch_OfAChangeThatAMajorityHasLate"},
	"ChangeStreamHistoryLost is EverythingChanged":                 {"TestWatch_OfABrokenStream/and its history is lost", "TestWatch_OfATruncatedOplog"},
	"rows are trimmed by key":                                      {"Trim removes the revisions that it is given, and no others"},
	"enabling and disabling are ordered, and conflict":             {"updates of one organization are as if one ran after the other, whoever makes them"},

	// Freshness
	"the beat of another handle proves nothing":                     {"TestFreshFor_BehindALateStream", "TestReplicas_LateStream"},
	"a beat carries the age of its handle, and comes by the stream": {"TestFreshFor_BehindALateStream", "FreshFor grows while a handle may miss changes, and is small again after"},
	"a lease is longer than MaxAge":                                 {"TestLease_OutlivesMaxAge"},
}

// TestSentences checks that each test which sentences names is there.
func TestSentences(t *testing.T) {
	tests := make(map[string][]string) // the texts in each function, by its name
	texts := make(map[string]bool)
	for _, dir := range []string{".", "../storagetest", "../../internal/system"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		must(t, err)
		for _, name := range files {
			f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
			must(t, err)
			for _, d := range f.Decls {
				of := ""
				if f, ok := d.(*ast.FuncDecl); ok {
					of = f.Name.Name
					tests[of] = append(tests[of], "")
				} else if dir != "../storagetest" {
					continue
				}
				ast.Inspect(d, func(n ast.Node) bool {
					if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
						text := strings.Trim(lit.Value, "\"`")
						tests[of] = append(tests[of], text)
						texts[text] = texts[text] || dir == "../storagetest"
					}
					return true
				})
			}
		}
	}
	for sentence, names := range sentences {
		for _, name := range names {
			function, part, _ := strings.Cut(name, "/")
			if !slices.Contains(tests[function], part) && !texts[name] {
				t.Errorf("%q: there is no test %q", sentence, name)
			}
		}
		if len(names) == 0 {
			t.Errorf("%q has no test", sentence)
		}
	}
}

// TestLease_OutlivesMaxAge checks that a handle which is given up has not trusted its caches for a while.
func TestLease_OutlivesMaxAge(t *testing.T) {
	if lease <= storage.MaxAge {
		t.Errorf("a lease is %v, want more than %v", lease, storage.MaxAge)
	}
}

// TestBarrier_WaitsUntilWatchersWereTold checks that a handle acknowledges a change only when its watchers were told.
// A watcher that drops a cache may take long.
func TestBarrier_WaitsUntilWatchersWereTold(t *testing.T) {
	o := newDatabase(t, sharedSet(t))
	a, b := openTest(t, o), openTest(t, o)
	called, release := make(chan struct{}), make(chan struct{})
	var told, once atomic.Bool
	b.Watch(func(storage.Change) {
		if once.CompareAndSwap(false, true) {
			close(called)
			<-release
			told.Store(true)
		}
	})
	updateRule(t, a)
	done := make(chan error, 1)
	go func() { done <- a.Barrier(t.Context()) }()
	<-called
	select {
	case err := <-done:
		t.Errorf("Barrier while a watcher is being told = %v", err)
		done <- err
	case <-time.After(10 * acknowledgeOwn):
	}
	close(release)
	if err := <-done; err != nil || !told.Load() {
		t.Errorf("Barrier = %v, and the watcher was told: %t", err, told.Load())
	}
}

// TestBarrier_ReadsTheCountersAfterTheSlots checks the order of Barrier's reads. What a live slot has heard by then is
// in a counter that is read later.
func TestBarrier_ReadsTheCountersAfterTheSlots(t *testing.T) {
	t.Parallel()
	set, messages := mongotest.LateFor(t)
	o := newDatabase(t, set)
	mine := o
	mine.URI += "&appName=" + messages.App
	a, b := openTest(t, mine), openTest(t, o)
	a.silence(t)
	updateRule(t, b)
	await(t, "the acknowledgement", func() bool {
		var row slotRow
		must(t, b.slots().FindOne(t.Context(), b.slot.mine()).Decode(&row))
		return row.Last != nil && row.Last.Key.Revision > 0
	})
	slots, counters := make(chan struct{}, 1000), make(chan bool, 1000)
	messages.At(func(c mongotest.Command, answered bool) {
		switch {
		case c.Name != "find" || answered == (c.Collection == countersName):
		case c.Collection == replicasName:
			slots <- struct{}{}
		case c.Collection == countersName:
			counters <- len(slots) > 0
		}
	})
	must(t, a.Barrier(t.Context()))
	select {
	case after := <-counters:
		if !after {
			t.Error("a counter was read before the slots")
		}
	default:
		t.Error("Barrier compares no counter")
	}
}

// TestFence_LeavesNoHead gives a handle up whose chain nobody continues. What closes the chain is no head, to nobody.
func TestFence_LeavesNoHead(t *testing.T) {
	o := newDatabase(t, sharedSet(t))
	a, b := openTest(t, o), openTest(t, o)
	for i, s := range []*Store{a, b} {
		l, err := ledger.Open(t.Context(), ledger.Config{Store: s, Signer: readerSigner, Scrub: ledgertest.Plain{}})
		must(t, err)
		decideOne(t, l, "acme", i)
		must(t, l.Close(t.Context()))
	}
	giveUpNow(t, b, a)
	var row slotRow
	must(t, b.slots().FindOne(t.Context(), doc("_id", a.slot.id)).Decode(&row))
	if row.Dead != "" || row.Holder != "" {
		t.Errorf("the slot after cleaning up has the holder %q and the dead %q", row.Holder, row.Dead)
	}
	if tip, err := b.tipOf(t.Context(), a.slot.chain); err != nil || tip.Seq != 1 {
		t.Errorf("the closed chain ends at head %d, %v, want 1", tip.Seq, err)
	}
	r, err := OpenSnapshot(t.Context(), o)
	must(t, err)
	defer func() { must(t, r.Close()) }()
	keys, err := receipt.NewKeys(readerSigner.Public())
	must(t, err)
	proof, err := ledger.Prove(t.Context(), r, ledger.ProveConfig{Keys: keys})
	if err != nil || proof.Heads != 2 || len(proof.Ends) != 2 || proof.Ends[0].Seq != 1 || proof.Ends[1].Seq != 1 {
		t.Errorf("Prove = %+v, %v, want one head in each of 2 chains", proof, err)
	}
}

// TestFence_FindsAnotherHolder checks a handle that does not know whether its last batch is stored, and whose chain
// another handle has continued. It must not take that head for the end of its own chain.
func TestFence_FindsAnotherHolder(t *testing.T) {
	o := newDatabase(t, sharedSet(t))
	a, b, w := openTest(t, o), openTest(t, o), storagetest.NewWriter()
	mustCommit(t, w, a, w.Record("org"))
	giveUpNow(t, b, a)
	c := openTest(t, o)
	if c.slot.chain != a.slot.chain {
		t.Fatal("the chain of the lost handle is not continued")
	}
	mustCommit(t, w, c, w.Record("org"))
	was := a.log.tip
	a.log.sure = false
	defer func() { a.log.sure = true }()
	if err := (&appending{ctx: t.Context(), s: a}).begin(); !errors.Is(err, errLost) {
		t.Errorf("begin where another holder has added a head = %v, want %v", err, errLost)
	}
	_, err := w.Commit(context.WithoutCancel(t.Context()), a, w.Record("org"))
	if !errors.Is(err, errLost) || a.log.tip != was {
		t.Errorf("Append = %v with the end %d, want %v and %d", err, a.log.tip.Seq, errLost, was.Seq)
	}
	storagetest.Check(t, c, w.Keys(t), "org")
}
