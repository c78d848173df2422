package api

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"writ.example/writ/storage"
)

const (
	// maxBuckets bounds the answer: 31 days of hours.
	maxBuckets = 31 * 24
	// maxCounted is how many values the answer names.
	maxCounted = 100
	// maxCounts bounds the counts that one answer reads. A value has one for each day.
	maxCounts = 200_000
)

// countsBody is the body of GET /v1/authorizations/counts. A body of a month has some ten thousand numbers,
// so it encodes itself.
type countsBody struct {
	from  time.Time
	step  time.Duration
	named []series // in the order of their values
	other []int64  // by bucket: the sums of all values that are not named
}

// series has the numbers of a value, by bucket. quoted is the value in JSON.
type series struct {
	quoted []byte
	at     []int64
}

// appendJSON implements appender. A bucket is {"at","counts":{value:n},"other"}, and lacks values whose
// numbers are 0.
func (c *countsBody) appendJSON(dst []byte) []byte {
	dst = append(dst, `{"data":[`...)
	for i, other := range c.other {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"at":"`...)
		dst = c.from.Add(time.Duration(i)*c.step).AppendFormat(dst, time.RFC3339)
		dst = append(dst, `","counts":{`...)
		first := true
		for _, v := range c.named {
			n := v.at[i]
			if n == 0 {
				continue
			}
			if !first {
				dst = append(dst, ',')
			}
			first = false
			dst = append(append(dst, v.quoted...), ':')
			dst = strconv.AppendInt(dst, n, 10)
		}
		dst = append(dst, `},"other":`...)
		dst = append(strconv.AppendInt(dst, other, 10), '}')
	}
	return append(dst, `]}`...)
}

var countedBy = map[string]storage.CountedBy{
	"decision": storage.CountedByDecision, "rule_id": storage.CountedByRule, "code": storage.CountedByCode,
	"agent_id": storage.CountedByAgent, "action_type": storage.CountedByAction,
}

// countsQuery is the query of GET /v1/authorizations/counts. from is the start of the first bucket, and to is
// the end of the last one.
type countsQuery struct {
	by       storage.CountedBy
	step     time.Duration
	from, to time.Time
}

func (s *Server) countsQuery(r *request) (c countsQuery, err error) {
	q := &r.query
	by, _ := q.take("by")
	c.step = time.Hour
	if step, ok := q.take("step"); ok {
		switch step {
		case "1h":
		case "1d":
			c.step = 24 * time.Hour
		default:
			q.refuse(invalid("step", "must be 1h or 1d"))
		}
	}
	c.from, c.to = q.timestamp("from"), q.timestamp("to")
	if c.to.IsZero() {
		c.to = r.now.UTC().Truncate(c.step).Add(c.step)
	}
	if c.from.IsZero() {
		c.from = c.to.AddDate(0, 0, -1)
		if c.step > time.Hour {
			c.from = c.to.AddDate(0, 0, -30)
		}
	}
	if !c.from.Before(c.to) {
		q.refuse(invalid("to", "must be after from"))
	}
	c.from = c.from.UTC().Truncate(c.step)
	c.to = c.to.UTC().Add(c.step - 1).Truncate(c.step)
	if c.from.Year() < 1970 || c.to.Year() > 9999 {
		q.refuse(invalid("from", "must be after 1970 and before 10000"))
	}
	if c.to.Sub(c.from) > maxBuckets*c.step {
		q.refuse(invalid("from", "must be at most %d hours or days before to, as step is: ask for a shorter range",
			maxBuckets))
	}
	if err := q.done(); err != nil { // a misspelt by is named first
		return c, err
	}
	var ok bool
	if c.by, ok = countedBy[by]; !ok {
		return c, invalid("by", "must be one of %s", strings.Join(slices.Sorted(maps.Keys(countedBy)), ", "))
	}
	return c, nil
}

// counts answers with the number of decisions in each hour or day. For a bound key it counts only the rows
// that the key may read.
func (s *Server) counts(r *request) error {
	q, err := s.countsQuery(r)
	if err != nil {
		return err
	}
	of, err := s.rows(r)
	if err != nil {
		return err
	}
	t := tally{q: q, byValue: make(map[string]*counted)}
	if of == nil {
		from, to := storage.DayOf(q.from), storage.DayOf(q.to.Add(-1))+1
		err = s.store.Counts(r.ctx, r.who.org, q.by, from, to, t.add)
	} else {
		err = s.countRows(r, of, &t)
	}
	if err != nil {
		return fmt.Errorf("counting decisions: %w", err)
	}
	return r.ok(t.body())
}

// countRows counts the rows that a bound key may read. It reads them all, because the store does not count
// by key.
func (s *Server) countRows(r *request, of *rowsOf, t *tally) error {
	f := storage.Filter{From: t.q.from, To: t.q.to}
	of.narrow(&f)
	rest, err := s.readRows(r, of, f, storage.Page{Limit: storage.MaxPage}, func(rows []*storage.Record) (more int) {
		for _, row := range rows {
			t.count(row.CountedAs(t.q.by), row.DecidedAt, 1)
		}
		return storage.MaxPage
	})
	if err == nil && rest != "" {
		err = tooMany("the rows of the key's agents are read one after another")
	}
	return err
}

func tooMany(why string) error {
	return invalid("from", "selects more than can be counted at once, because %s: ask for a shorter range", why)
}

// tally has the number of decisions with each value in each bucket.
type tally struct {
	q       countsQuery
	byValue map[string]*counted
	read    int
}

type counted struct {
	value string
	total int64
	at    []inBucket // in any order, several of one bucket
}

type inBucket struct {
	bucket int
	n      int64
}

func (t *tally) add(c storage.Count) error {
	if t.read++; t.read > maxCounts {
		return tooMany("there are too many values")
	}
	start := c.Day.Start()
	for hour, n := range c.Hours {
		if n != 0 {
			t.count(c.Value, start.Add(time.Duration(hour)*time.Hour), n)
		}
	}
	return nil
}

func (t *tally) count(value string, at time.Time, n int64) {
	if value == "" || at.Before(t.q.from) || !at.Before(t.q.to) {
		return
	}
	c := t.byValue[value]
	if c == nil {
		c = &counted{value: value}
		t.byValue[value] = c
	}
	c.total += n
	c.at = append(c.at, inBucket{int(at.Sub(t.q.from) / t.q.step), n})
}

// body returns all buckets in order. They name the maxCounted values with the greatest totals over all
// buckets.
func (t *tally) body() *countsBody {
	buckets := t.q.to.Sub(t.q.from) / t.q.step
	body := &countsBody{from: t.q.from, step: t.q.step, other: make([]int64, buckets)}
	all := slices.SortedFunc(maps.Values(t.byValue), func(a, b *counted) int {
		return cmp.Or(cmp.Compare(b.total, a.total), cmp.Compare(a.value, b.value))
	})
	named := all[:min(len(all), maxCounted)]
	for _, c := range all[len(named):] {
		for _, in := range c.at {
			body.other[in.bucket] += in.n
		}
	}
	slices.SortFunc(named, func(a, b *counted) int { return cmp.Compare(a.value, b.value) })
	for _, c := range named {
		quoted, _ := jsontext.AppendQuote(nil, c.value) // an error is only of invalid UTF-8, which it replaces
		v := series{quoted, make([]int64, buckets)}
		for _, in := range c.at {
			v.at[in.bucket] += in.n
		}
		body.named = append(body.named, v)
	}
	return body
}
