package remote

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// UsagePath is the path of the meters of an organization's plan.
const UsagePath = "/v1/usage/summary"

// PrintUsage prints the meters of an organization's plan.
func PrintUsage(w io.Writer, doc jsontext.Value) error {
	var u struct {
		Plan   string `json:"plan"`
		Period struct {
			Start time.Time `json:"start"`
			End   time.Time `json:"end"`
		} `json:"period"`
		Meters map[string]struct {
			Used      int64 `json:"used"`
			Limit     int64 `json:"limit"`
			Remaining int64 `json:"remaining"`
		} `json:"meters"`
		RetentionDays int64 `json:"retention_days"` // 0 is for good
		Upgrade       struct {
			Reason string `json:"reason"`
		} `json:"upgrade"`
	}
	if err := decode(doc, &u); err != nil {
		return err
	}
	kept := "kept for good"
	if u.RetentionDays > 0 {
		kept = fmt.Sprintf("kept for %d days", u.RetentionDays)
	}
	err := Fields(w, "plan", u.Plan, "period", Time(u.Period.Start)+" to "+Time(u.Period.End),
		"history", kept, "advice", u.Upgrade.Reason)
	if err != nil {
		return err
	}
	fmt.Fprintln(w)
	var rows [][]string
	for _, name := range slices.Sorted(maps.Keys(u.Meters)) {
		m := u.Meters[name]
		limit, left := strconv.FormatInt(m.Limit, 10), strconv.FormatInt(m.Remaining, 10)
		if name == "rules" && m.Limit == 0 {
			limit, left = "none", "" // so it is in the API
		}
		rows = append(rows, []string{name, strconv.FormatInt(m.Used, 10), limit, left})
	}
	return Table(w, []string{"METER", "USED", "LIMIT", "REMAINING"}, rows)
}
