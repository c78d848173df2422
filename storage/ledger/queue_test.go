package ledger

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ.example/writ/storage"
)

// waiterOf returns a waiter for records.
func waiterOf(records ...*storage.Record) *waiter {
	w := &waiter{}
	for _, r := range records {
		w.places = append(w.places, place{record: r})
	}
	return w
}

// queueOf returns a queue with one waiter for each element of orgs, in the order of orgs.
func queueOf(t *testing.T, limit int, orgs ...string) *queue {
	t.Helper()
	q := newQueue(limit)
	for i, org := range orgs {
		if err := q.put(waiterOf(&storage.Record{OrganizationID: org, IntentID: fmt.Sprint(org, i)})); err != nil {
			t.Fatalf("put of the row %d of %s = %v", i, org, err)
		}
	}
	return q
}

func intentIDs(batch []*waiter) string {
	var all []string
	for _, w := range batch {
		all = append(all, w.places[0].record.IntentID)
	}
	return strings.Join(all, " ")
}

// TestQueue_FillsABatchFromOrganizationsInTurn checks how a batch is filled from a backlog. It
// takes the first waiter of each organization, then the second of each, and so on.
func TestQueue_FillsABatchFromOrganizationsInTurn(t *testing.T) {
	backlog := strings.Fields("a a a a a b c b a")
	for limit, want := range map[int][]string{
		3:  {"a0 b5 c6", "a1 a2 b7", "a3 a4 a8"},
		4:  {"a0 a1 b5 c6", "a2 a3 a4 b7", "a8"},
		5:  {"a0 a1 b5 c6 b7", "a2 a3 a4 a8"},
		9:  {"a0 a1 a2 a3 a4 b5 c6 b7 a8"},
		20: {"a0 a1 a2 a3 a4 b5 c6 b7 a8"},
	} {
		q := queueOf(t, 100, backlog...)
		var got []string
		for q.len() > 0 {
			got = append(got, intentIDs(q.take(nil, limit)))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("batches of %d (-want +got):\n%s", limit, diff)
		}
	}
}

func TestQueue_OneBacklogLeavesRoomForOthers(t *testing.T) {
	q := queueOf(t, 4, "a", "a")
	if err := q.put(waiterOf(&storage.Record{OrganizationID: "a"})); !errors.Is(err, ErrOverloaded) {
		t.Errorf("put above an organization's share = %v, want ErrOverloaded", err)
	}
	for _, org := range []string{"b", "c"} {
		if err := q.put(waiterOf(&storage.Record{OrganizationID: org})); err != nil {
			t.Errorf("put of %s beside a backlog = %v, want nil", org, err)
		}
	}
	if err := q.put(&waiter{}); !errors.Is(err, ErrOverloaded) {
		t.Errorf("put in a full queue = %v, want ErrOverloaded", err)
	}
}

// TestQueue_TakesEachOnceAndInItsOrder checks that every waiter is taken once, and that an
// organization's rows keep their order. Within a batch, the shares of organizations differ by at
// most one. An organization with no further waiters may have a smaller share.
func TestQueue_TakesEachOnceAndInItsOrder(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		orgs := make([]string, 1+random.IntN(60))
		for i := range orgs {
			orgs[i] = string(rune('a' + random.IntN(1+random.IntN(5))))
		}
		q := queueOf(t, 1000, orgs...)
		limit := 1 + random.IntN(20)
		taken, next := 0, make(map[string]int)
		for q.len() > 0 {
			batch := q.take(nil, limit)
			taken += len(batch)
			share := make(map[string]int)
			for _, w := range batch {
				var at int
				org := w.org()
				if _, err := fmt.Sscan(strings.TrimPrefix(w.places[0].record.IntentID, org), &at); err != nil {
					t.Fatal(err)
				}
				if at < next[org] {
					t.Fatalf("the row %d of %s came after %d", at, org, next[org])
				}
				next[org] = at
				share[org]++
			}
			checkShares(t, q, share)
		}
		if taken != len(orgs) || len(q.byOrg) != 0 {
			t.Fatalf("took %d of %d, %d organizations are still counted", taken, len(orgs), len(q.byOrg))
		}
	}
}

func checkShares(t *testing.T, q *queue, share map[string]int) {
	t.Helper()
	most := 0
	for _, n := range share {
		most = max(most, n)
	}
	for org := range q.byOrg {
		if share[org] < most-1 {
			t.Errorf("%s still waits and had %d of a batch, another %d", org, share[org], most)
		}
	}
}
