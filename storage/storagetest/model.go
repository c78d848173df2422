package storagetest

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
)

// Model gives a new store random operations, as many as steps says. It compares the answers with a simple model.
// The operations append rows and settlements, new and again, remove old rows, import rows and abandon the import.
// Between them Model calls again, if it isn't nil, and goes on with the store that again returns.
func Model(t *testing.T, seed uint64, steps int, s storage.Store, again func(storage.Store) storage.Store) {
	m := &model{
		Checks: Checks{t}, Store: s, Rand: rand.New(rand.NewPCG(seed, 0)), writer: NewWriter(),
		rows: make(map[string]*modelRow), meters: make(map[string]int64),
	}
	m.makeForeign()
	for range steps {
		switch m.IntN(14) {
		case 0, 1, 2, 3, 4, 5:
			m.commit()
		case 6, 7:
			m.settle()
		case 8, 9:
			m.remove()
		case 10, 11:
			m.imports()
		case 12:
			m.abandon()
		case 13:
			if again != nil {
				m.Store = again(m.Store)
			}
		}
		if m.IntN(4) == 0 {
			m.check()
		}
		if t.Failed() {
			return
		}
	}
	m.check()
}

type model struct {
	Checks
	storage.Store
	*rand.Rand
	writer *Writer

	rows    map[string]*modelRow // the decided intents, by key
	meters  map[string]int64
	foreign []*modelRow // rows of another store
	ids     int64
}

// modelRow is a row, or the tombstone of a removed row.
type modelRow struct {
	*storage.Record
	tombstone *storage.Tombstone // if the row is imported as a tombstone
	removed   bool
	imported  bool
	settled   bool // by this store or by the other
	settledIn bool // by this store
}

func (r *modelRow) key() string { return r.OrganizationID + "/" + r.IntentKey() }

func byDecision(a, b *modelRow) int { return cmp.Compare(a.DecisionID, b.DecisionID) }

// modelSlot is the time between possible times of decisions. Retention takes whole slots.
const modelSlot = 5 * time.Minute

// record returns a row whose time is near those before it, and sometimes earlier.
func (m *model) record(org string, change ...func(*storage.Record)) *storage.Record {
	m.ids++
	at := noon.Add(time.Duration(m.ids/3+20) * modelSlot)
	if m.IntN(6) == 0 {
		at = at.Add(-time.Duration(m.IntN(20)) * modelSlot)
	}
	id := decisionID(at, m.ids)
	return m.writer.Record(org, append(change, func(r *storage.Record) { r.DecidedAt, r.DecisionID = at, id })...)
}

func (m *model) org() string { return []string{"a", "b"}[m.IntN(2)] }

// any returns a row at random, or nil without rows.
func (m *model) any() *modelRow {
	all := slices.SortedFunc(maps.Values(m.rows), byDecision)
	if len(all) == 0 {
		return nil
	}
	return all[m.IntN(len(all))]
}

// live returns the rows of an organization that are not removed, oldest first.
func (m *model) live(org string) (rows []*modelRow) {
	for _, r := range m.rows {
		if r.OrganizationID == org && !r.removed {
			rows = append(rows, r)
		}
	}
	slices.SortFunc(rows, byDecision)
	return rows
}

// makeForeign makes rows that another store decided, some settled or removed there.
func (m *model) makeForeign() {
	log := openElsewhere()
	for i := range 24 {
		r := m.record([]string{"a", "b"}[i%2], func(r *storage.Record) {
			if i%5 == 4 {
				r.ApprovalID = IntentID(1e9 + i)
			}
		})
		_, err := m.writer.Commit(m.Context(), log, r)
		m.Must("Commit elsewhere", err)
		f := &modelRow{Record: r, imported: true}
		if i%7 == 6 {
			f.removed, f.tombstone = true, m.buried(r)[0]
		} else if i%3 == 0 {
			_, err := m.writer.Settle(m.Context(), log, r, storage.Settlement{Outcome: storage.Executed, RecordedAt: r.DecidedAt})
			m.Must("Settle elsewhere", err)
			f.settled = true
		}
		m.foreign = append(m.foreign, f)
	}
}

// commit appends new intents, decided intents, intents under other approvals, and foreign rows' intents.
func (m *model) commit() {
	var batch []*storage.Record
	for range 1 + m.IntN(4) {
		of := m.any()
		if m.IntN(12) == 0 {
			of = m.foreign[m.IntN(len(m.foreign))]
		}
		if of == nil || m.IntN(2) == 0 {
			batch = append(batch, m.record(m.org()))
			continue
		}
		other := m.IntN(3) == 0
		batch = append(batch, m.record(of.OrganizationID, func(r *storage.Record) {
			if r.IntentID, r.ApprovalID = of.IntentID, of.ApprovalID; other {
				r.ApprovalID = IntentID(2e9 + int(m.ids))
			}
		}))
	}
	got, err := m.writer.Commit(m.Context(), m.Store, batch...)
	m.Must("Commit", err)
	for i, r := range batch {
		row := &modelRow{Record: r}
		was := m.rows[row.key()]
		switch {
		case was == nil && got[i] == nil:
			if m.rows[row.key()] = row; r.Metered() {
				m.meters[r.OrganizationID]++
			}
		case was == nil || got[i] == nil || got[i].DecisionID != was.DecisionID || got[i].Removed() != was.removed:
			m.Fatalf("Commit of the intent %s = %+v, want %+v", r.IntentID, got[i], was)
		}
	}
}

func (m *model) settle() {
	r := m.any()
	if r == nil || r.tombstone != nil {
		return
	}
	of := *r.Record
	of.Settlement = nil
	earlier, err := m.writer.Settle(m.Context(), m.Store, &of,
		storage.Settlement{Outcome: storage.Executed, RecordedAt: r.DecidedAt.Add(time.Second)})
	m.Must("Settle", err)
	if (earlier != nil) != (r.removed || r.settled) {
		m.Fatalf("Settle = %+v of %+v", earlier, r)
	}
	if earlier == nil {
		r.settled, r.settledIn = true, true
	}
}

func (m *model) remove() {
	org := m.org()
	rows := m.live(org)
	if len(rows) == 0 {
		return
	}
	before := rows[m.IntN(len(rows))].DecidedAt.Add(modelSlot / 2)
	if m.IntN(10) == 0 {
		before = before.AddDate(0, 0, 1)
	}
	most := storage.Expired{Records: 1 + m.IntN(20), Settled: m.IntN(20)}
	var want storage.Expired
	for _, r := range rows {
		if !r.DecidedAt.Before(before) || want.Records == most.Records || r.settled && want.Settled == most.Settled {
			break
		}
		want.Records++
		if r.settled {
			want.Settled++
		}
		r.removed = true
	}
	got, err := m.RemoveRecords(m.Context(), org, before, most)
	if err != nil || got != want {
		m.Fatalf("RemoveRecords(%s, %v, %+v) = %+v, %v, want %+v", org, before, most, got, err, want)
	}
}

// imports imports some of the foreign rows of an organization. It is a conflict if this store decided one of them.
func (m *model) imports() {
	org, conflict := m.org(), false
	var rows []*storage.Record
	var left []*storage.Tombstone
	var some []*modelRow
	for _, i := range m.Perm(len(m.foreign))[:1+m.IntN(6)] {
		f := m.foreign[i]
		if f.OrganizationID != org {
			continue
		}
		was := m.rows[f.key()]
		conflict = conflict || was != nil && was.DecisionID != f.DecisionID
		if some = append(some, f); f.tombstone != nil {
			left = append(left, f.tombstone)
		} else {
			rows = append(rows, f.Record)
		}
	}
	switch err := m.Import(m.Context(), org, rows, left); {
	case conflict:
		if !errors.Is(err, storage.ErrConflict) {
			m.Fatalf("Import of a decided intent = %v, want %v", err, storage.ErrConflict)
		}
		return
	case err != nil:
		m.Fatalf("Import = %v", err)
	}
	for _, f := range some {
		if m.rows[f.key()] == nil {
			row := *f
			m.rows[f.key()] = &row
		}
	}
}

// abandon removes what was imported for an organization, unless this store settled a row of that.
func (m *model) abandon() {
	org, n, settled := m.org(), 0, false
	for _, r := range m.rows {
		if r.OrganizationID == org && r.imported {
			n++
			settled = settled || r.settledIn
		}
	}
	got, err := m.RemoveImported(m.Context(), org, 1000)
	if settled {
		if !errors.Is(err, storage.ErrConflict) {
			m.Fatalf("RemoveImported with a settled row = %d, %v, want %v", got, err, storage.ErrConflict)
		}
		return
	}
	if err != nil || got != n {
		m.Fatalf("RemoveImported = %d, %v, want %d", got, err, n)
	}
	maps.DeleteFunc(m.rows, func(_ string, r *modelRow) bool { return r.OrganizationID == org && r.imported })
}

// check compares all that the store can be asked.
func (m *model) check() {
	m.Helper()
	live := make(map[string][]*modelRow)
	for _, org := range []string{"a", "b"} {
		live[org] = m.live(org)
		for d := range engine.Deny + 1 { // 0 is every decision
			m.wantList(org, storage.Filter{Decision: d}, live[org], func(r *modelRow) bool { return d == 0 || r.Decision == d })
		}
		got, err := m.Metered(m.Context(), org, storage.MonthOf(noon))
		if err != nil || got != m.meters[org] {
			m.Errorf("Metered(%s) = %d, %v, want %d", org, got, err, m.meters[org])
		}
	}
	CheckCounts(m.T, m.Store, "a", "b")
	for _, r := range m.rows {
		got, err := m.Decided(m.Context(), r.OrganizationID, r.IntentID, r.ApprovalID)
		if err != nil || got.DecisionID != r.DecisionID || got.Removed() != r.removed {
			m.Errorf("Decided(%s) = %+v, %v, want %+v", r.IntentID, got, err, r)
		}
		switch _, err := m.Record(m.Context(), r.OrganizationID, r.DecisionID); {
		case r.removed:
			m.WantErr("Record of a removed row", err, storage.ErrNotFound)
		case err != nil:
			m.Errorf("Record(%s) = %v, want %+v", r.DecisionID, err, r)
		}
		m.wantList(r.OrganizationID, storage.Filter{IntentID: r.IntentID}, live[r.OrganizationID],
			func(other *modelRow) bool { return other.IntentID == r.IntentID })
	}
	for _, f := range m.foreign {
		if m.rows[f.key()] == nil {
			_, err := m.Decided(m.Context(), f.OrganizationID, f.IntentID, f.ApprovalID)
			m.WantErr("Decided of a row that is not imported", err, storage.ErrNotFound)
		}
	}
}

// wantList compares a list, newest first, with the rows that its filter selects. rows are sorted, oldest first.
func (m *model) wantList(org string, f storage.Filter, rows []*modelRow, selects func(*modelRow) bool) {
	m.Helper()
	var got, want []string
	for _, r := range slices.Backward(rows) {
		if selects(r) {
			want = append(want, fmt.Sprint(r.DecisionID, r.settled))
		}
	}
	for _, r := range All(m, 1+m.IntN(9), func(p storage.Page) ([]*storage.Record, string, error) {
		return m.ListRecords(m.Context(), org, f, p)
	}) {
		got = append(got, fmt.Sprint(r.DecisionID, r.Settlement != nil))
	}
	if !slices.Equal(got, want) {
		m.Errorf("ListRecords(%s, %+v) = %q, want %q", org, f, got, want)
	}
}
