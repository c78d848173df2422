package system

import (
	"testing"

	"writ.example/writ/storage"
	"writ.example/writ/storage/receipt"
)

// TestDecision_Audit_Queued_CrashAndStop checks --audit-ack=queued. The real binary answers before
// decisions are durable, and the test kills it under load many times. After a kill the history
// contains all answers except those under the last heads, in an unbroken chain. A lost intent can
// be decided again, once. A normal stop loses no answers.
func TestDecision_Audit_Queued_CrashAndStop(t *testing.T) {
	t.Parallel()
	const queued = "--audit-ack=queued"
	data, token := newData(t)
	plans := manyEvaluations(t)
	p := start(t, data, plans, queued)
	register(t, p.url, token)
	answers := make(map[string]string) // the answers that were not lost
	for range rounds(3, 5) {
		l := newLoad(t, token)
		l.serve(p.url)
		workers := l.start(crashWorkers)
		l.awaitAnswers(t, crashAnswers)
		p.kill(t)
		l.stop()
		workers.Wait()
		p = start(t, data, plans, queued)
		lost := lostAnswers(t, l.answers, history(t, p.url, token))
		t.Logf("%d of %d answers were lost", len(lost), len(l.answers))
		for id := range lost {
			delete(l.answers, id)
		}
		l.serve(p.url)
		l.resend(t, p.url) // sends intents without an answer, or with a lost answer, twice
		l.auditFaults(t)
		for id, body := range l.answers {
			answers[id] = body
		}
	}
	p.stop(t)
	p = start(t, data, plans, queued)
	rows := history(t, p.url, token)
	p.stop(t)
	auditAnswers(t, data, answers, rows)
	auditStore(t, data, rows)
}

// lostAnswers returns the answers that are not in rows. It fails the test unless all lost answers
// are under the last heads: only the end of the history may be lost.
func lostAnswers(t *testing.T, answers map[string]string, rows map[string]*storage.Record) map[string]bool {
	t.Helper()
	var last uint64 // the last head that was kept
	for _, r := range rows {
		last = max(last, seq(t, r.Receipt))
	}
	lost := make(map[string]bool)
	for id, body := range answers {
		res, err := receipt.ParseResult([]byte(body))
		if err != nil {
			t.Fatalf("answer to %s = %s: %v", id, body, err)
		}
		n := seq(t, res.Receipt)
		row, kept := rows[id]
		switch {
		case kept && row.Receipt != res.Receipt:
			t.Errorf("the history of %s has another receipt than was answered", id)
		case !kept && n <= last:
			t.Errorf("the answer to %s under head %d is lost, and head %d is not", id, n, last)
		case !kept:
			lost[id] = true
		}
	}
	return lost
}

func seq(t *testing.T, r receipt.Receipt) uint64 {
	t.Helper()
	head, err := r.SignedHead()
	must(t, err)
	return head.Seq
}
