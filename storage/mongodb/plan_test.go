package mongodb

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/storagetest"
)

// TestPlans_UseAnIndex checks the server's plans for the queries of the history. No plan may sort
// rows or read all rows.
func TestPlans_UseAnIndex(t *testing.T) {
	s, w := openTest(t, newDatabase(t, sharedSet(t))), storagetest.NewWriter()
	for range 8 {
		mustCommit(t, w, s, w.Record("a"), w.Record("b"), w.Record("c"))
	}
	if _, err := s.RemoveRecords(t.Context(), "a", time.Now().AddDate(10, 0, 0), storage.Expired{Records: 5}); err != nil {
		t.Fatal(err)
	}
	list := func(f storage.Filter) bson.D {
		lower, upper := idRange(&f, nil)
		indexed, rest := parts("a", &f)
		return slices.Concat(indexed, idsIn(lower, upper), rest, times(&f))
	}
	onShard := &database{sharded: true}
	for name, q := range map[string]struct {
		collection   string
		filter, sort bson.D
		index        string
	}{
		"newest":        {recordsName, list(storage.Filter{}), newestFirst, "o_1_d_-1"},
		"of a time":     {recordsName, list(storage.Filter{From: time.Now(), To: time.Now().Add(time.Hour)}), newestFirst, "o_1_d_-1"},
		"of an agent":   {recordsName, list(storage.Filter{AgentIDs: []string{"x"}, PolicyID: "p"}), newestFirst, "o_1_a_1_d_-1"},
		"of a decision": {recordsName, list(storage.Filter{Decision: engine.Deny}), newestFirst, "o_1_k_1_d_-1"},
		"expired":       {recordsName, older("a", time.Now()), oldestFirst, "o_1_d_-1"},
		"organizations": {recordsName, doc("o", doc("$gt", "a")), doc("o", 1, "d", -1), "o_1_d_-1"},
		"entries":       {entriesName, doc("o", "a", "k", "change"), doc("at", -1), "o_1_k_1_at_-1"},
		"tip":           {headsName, headsFrom(s.slot.chain, 0), doc("_id", -1), "_id_"},
		"meters":        {quotasName, doc("m", 202611), doc(), "m_1_o_1"},
		"places":        {quotasName, doc("g.h", "x"), doc(), "g.h_1"},
		"of a shard":    {recordsName, onShard.onShard("a", list(storage.Filter{})), newestFirst, "o_1_d_-1"},
		"of an agent on a shard": {recordsName, onShard.onShard("a", list(storage.Filter{AgentIDs: []string{"x"}})), newestFirst,
			"o_1_a_1_d_-1"},
	} {
		find := doc("find", q.collection, "filter", q.filter, "sort", q.sort, "limit", 51)
		plan, err := s.db.RunCommand(t.Context(), doc("explain", find, "verbosity", "queryPlanner")).Raw()
		must(t, err)
		won := plan.Lookup("queryPlanner", "winningPlan").String()
		if !strings.Contains(won, `"IXSCAN"`) && !strings.Contains(won, `"IDHACK"`) || strings.Contains(won, `"SORT"`) || strings.Contains(won, `"COLLSCAN"`) ||
			!strings.Contains(won, `"indexName": "`+q.index+`"`) && !strings.Contains(won, `"indexName":"`+q.index+`"`) {
			t.Errorf("%s: the plan is %s, want the index %s alone", name, won, q.index)
		}
	}
}

// TestOnShard checks that the range of _id with which a mongos finds the shards of an organization selects all of its
// records, and those of no other.
func TestOnShard(t *testing.T) {
	s, w := openTest(t, newDatabase(t, sharedSet(t))), storagetest.NewWriter()
	orgs := []string{"a", "a\x00", "a\x00b", "b", strings.Repeat("a", 40)}
	for _, org := range orgs {
		for _, intent := range []string{uuid.Nil.String(), uuid.Max.String(), uuid.NewString()} {
			mustCommit(t, w, s, w.Record(org, func(r *storage.Record) { r.IntentID = intent }))
		}
	}
	for _, org := range orgs {
		rows, err := find[struct {
			Org string `bson:"o"`
		}](t.Context(), s.records(), (&database{sharded: true}).onShard(org, doc()))
		if err != nil || len(rows) != 3 {
			t.Errorf("%d rows are in the range of %q, %v, want 3", len(rows), org, err)
		}
		for _, row := range rows {
			if row.Org != org {
				t.Errorf("a row of %q is in the range of %q", row.Org, org)
			}
		}
	}
	s.sharded = true // no background work reads it
	if rows, _, err := s.ListRecords(t.Context(), "a", storage.Filter{}, storage.Page{Limit: 2}); err != nil || len(rows) != 2 {
		t.Errorf("ListRecords = %d rows, %v, want 2", len(rows), err)
	}
	later := time.Now().AddDate(10, 0, 0)
	if n, err := s.RemoveRecords(t.Context(), "a", later, storage.Expired{Records: 2}); err != nil || n.Records != 2 {
		t.Errorf("RemoveRecords = %+v, %v, want 2", n, err)
	}
	if n, err := s.CountExpired(t.Context(), "a", later, 9); err != nil || n.Records != 1 {
		t.Errorf("CountExpired = %+v, %v, want 1", n, err)
	}
}
