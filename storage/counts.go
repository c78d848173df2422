package storage

import (
	"context"
	"time"

	"writ.example/writ/engine"
)

// CountedBy is a member of the records by which a [Counter] counts them. Its values are stored.
type CountedBy byte

// The members by which records are counted. The rule and the code come from the first finding that
// decides.
const (
	CountedByDecision CountedBy = 'd'
	CountedByRule     CountedBy = 'r'
	CountedByCode     CountedBy = 'c'
	CountedByAgent    CountedBy = 'a'
	CountedByAction   CountedBy = 't'
)

// CountedByAll are all values of [CountedBy].
var CountedByAll = [...]CountedBy{
	CountedByDecision, CountedByRule, CountedByCode, CountedByAgent, CountedByAction,
}

// Day is a day in UTC, as the number of days since 1970-01-01.
type Day int32

const (
	secondsOfHour = 3600
	secondsOfDay  = 24 * secondsOfHour
)

// DayOf returns the day that t is in.
func DayOf(t time.Time) Day {
	day, _ := dayAndHour(t)
	return day
}

// Start returns the first moment of d.
func (d Day) Start() time.Time { return time.Unix(int64(d)*secondsOfDay, 0).UTC() }

func dayAndHour(t time.Time) (day Day, hour int) {
	of := t.Unix() % secondsOfDay
	if of < 0 {
		of += secondsOfDay
	}
	return Day((t.Unix() - of) / secondsOfDay), int(of / secondsOfHour) //nolint:gosec // times are of this era
}

// Hours has a number for each hour of a day in UTC.
type Hours [24]int64

// Count is the number of records with a value in each hour of a day.
type Count struct {
	Value string
	Day   Day
	Hours Hours
}

// Counter counts the records that a [Log] has appended and an [Importer] has imported.
type Counter interface {
	// Counts calls f with the numbers of org's records, by value, on each day d with from <= d < to. f
	// may get several counts of one value and day, in any order, and an hour may be negative in one of
	// them. Their sums must equal a scan of the records at one moment.
	Counts(ctx context.Context, org string, by CountedBy, from, to Day, f func(Count) error) error
}

// CountedAs returns the value of r by which it is counted, or an empty text if r has none.
func (r *Record) CountedAs(by CountedBy) string {
	switch by {
	case CountedByDecision:
		return r.Decision.String()
	case CountedByAgent:
		return r.AgentID
	case CountedByAction:
		return r.ActionType
	}
	for i := range r.Findings {
		switch f := &r.Findings[i]; {
		case !f.Decides:
		case by == CountedByRule:
			return f.RuleID
		default:
			return f.Code
		}
	}
	if by == CountedByCode && len(r.Findings) == 0 && r.Decision == engine.Allow {
		return string(engine.CodePolicyAllowed)
	}
	return ""
}

// Counted calls f for each value by which r is counted, with the day and the hour of its decision.
func (r *Record) Counted(f func(by CountedBy, value string, day Day, hour int)) {
	day, hour := dayAndHour(r.DecidedAt)
	for _, by := range CountedByAll {
		if value := r.CountedAs(by); value != "" {
			f(by, value, day, hour)
		}
	}
}
