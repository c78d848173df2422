package condition

import (
	"strings"
	"testing"
	"time"

	"writ.example/writ/engine/resource"
)

const emails = `{"count":{"by":["agent_id"],"action_type":"email.send","window":"1h"},"gt":20}`

func TestCounter_IsParsed(t *testing.T) {
	for name, tt := range map[string]struct {
		doc  string
		side resource.Side
		want string
	}{
		"count":              {emails, resource.ForBlock, "count of email.send by agent_id in 3600s"},
		"of an organization": {`{"count":{"window":"90m"},"gte":1}`, resource.ForBlock, "count in 5400s"},
		"by both":            {`{"count":{"by":["session_id","agent_id"],"window":"7d"},"gt":1}`, resource.ForBlock, "count by agent_id by session_id in 604800s"},
		"sum": {`{"all":[{"field":"action_type","op":"glob","value":"pay.*"},
			{"sum":{"field":"cost.amount_minor","currency":"EUR","by":["agent_id"],"window":"24h"},"gt":20000}]}`,
			resource.ForBlock, "sum of cost.amount_minor in EUR by agent_id in 86400s"},
		"room, of a rule that allows": {`{"count":{"action_type":"email.*","window":"60s"},"lte":5}`, resource.ForAllow, "count of email.* in 60s"},
		"negated":                     {`{"not":{"count":{"window":"60s"},"lt":5}}`, resource.ForBlock, "count in 60s"},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := Compile(tt.doc, Options{Side: tt.side})
			if err != nil {
				t.Fatal(err)
			}
			if len(c.Counters) != 1 || c.Counters[0].Key != tt.want {
				t.Errorf("counters %+v, want %q", c.Counters, tt.want)
			}
		})
	}
}

func TestCounter_IsRefused(t *testing.T) {
	for name, tt := range map[string]struct{ doc, want string }{
		"no window":           {`{"count":{"by":["agent_id"]},"gt":20}`, `has no "window"`},
		"a window too short":  {`{"count":{"window":"59s"},"gt":20}`, "between 60s and 7d"},
		"a window too long":   {`{"count":{"window":"8d"},"gt":20}`, "between 60s and 7d"},
		"no unit":             {`{"count":{"window":"3600"},"gt":20}`, "between 60s and 7d"},
		"nothing to compare":  {`{"count":{"window":"1h"}}`, "compared with nothing"},
		"another operator":    {`{"count":{"window":"1h"},"eq":20}`, `"eq" does not go beside a counter`},
		"an unknown member":   {`{"count":{"windows":"1h"},"gt":20}`, `unknown member "windows"`},
		"an unknown key":      {`{"count":{"window":"1h","by":["resource"]},"gt":20}`, `want "agent_id" or "session_id"`},
		"both":                {`{"count":{"window":"1h"},"sum":{"window":"1h"},"gt":1}`, "one of count and sum"},
		"a sum of anything":   {`{"sum":{"field":"metadata.n","currency":"EUR","window":"1h"},"gt":1}`, `only "cost.amount_minor"`},
		"no currency":         {`{"sum":{"field":"cost.amount_minor","window":"1h"},"gt":1}`, `has no "currency"`},
		"what is no currency": {`{"sum":{"field":"cost.amount_minor","currency":"eur","window":"1h"},"gt":1}`, "three upper-case"},
		"a text to compare":   {`{"count":{"window":"1h"},"gt":"20"}`, "want"},
		"a bad glob":          {`{"count":{"window":"1h","action_type":"email.?"},"gt":20}`, "wildcard"},
		"loose where strict":  {`{"count":{"window":"1h"},"lt":20}`, "gt or gte"},
		"loose by negation":   {`{"not":{"count":{"window":"1h"},"gt":20}}`, "lt or lte"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Compile(tt.doc, Options{Side: resource.ForBlock})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
		})
	}
}

// TestCounter_IsCompared checks comparisons with a count. If the counter does not count the intent,
// the comparison is false. If the counter has no value, the comparison is an error.
func TestCounter_IsCompared(t *testing.T) {
	c, err := Compile(emails, Options{Side: resource.ForBlock})
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		counts []Count
		want   bool
		failed bool
	}{
		"the twentieth":    {[]Count{{Counter: c.Counters[0], N: 20}}, false, false},
		"the twenty-first": {[]Count{{Counter: c.Counters[0], N: 21}}, true, false},
		"not counted":      {[]Count{{Counter: c.Counters[0], N: Uncounted}}, false, false},
		"not read":         {nil, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			f := NewFrame()
			defer f.Free()
			f.SetCounts(tt.counts)
			got, err := c.Program.Eval(f)
			if got != tt.want || (err != nil) != tt.failed {
				t.Errorf("Eval = %v, %v; want %v, failed %v", got, err, tt.want, tt.failed)
			}
		})
	}
}

func TestCounter_CountsWhatItNames(t *testing.T) {
	c, err := Compile(`{"sum":{"field":"cost.amount_minor","currency":"EUR","by":["session_id"],"action_type":"pay.*","window":"1h"},"gt":1}`, Options{Side: resource.ForBlock})
	if err != nil {
		t.Fatal(err)
	}
	n := c.Counters[0]
	if n.Bucket() != time.Minute {
		t.Errorf("a part of %v, want a sixtieth", n.Bucket())
	}
	for _, tt := range []struct {
		action, currency, session string
		want                      bool
	}{
		{"pay.card", "EUR", "s", true},
		{"pay.card", "USD", "s", false},
		{"pay.card", "", "s", false},
		{"pay.card", "EUR", "", false},
		{"email.send", "EUR", "s", false},
	} {
		if got := n.Counts(tt.action, tt.currency, tt.session); got != tt.want {
			t.Errorf("Counts(%q, %q, %q) = %v, want %v", tt.action, tt.currency, tt.session, got, tt.want)
		}
	}
}

func TestCounter_Bounds(t *testing.T) {
	for doc, tt := range map[string]struct {
		side resource.Side
		upTo map[int64]int64
	}{
		`{"count":{"window":"1h"},"gt":20}`:  {resource.ForBlock, map[int64]int64{0: 20, 20: 20, 21: MaxInteger}},
		`{"count":{"window":"1h"},"gte":20}`: {resource.ForBlock, map[int64]int64{0: 19, 19: 19, 20: MaxInteger}},
		`{"count":{"window":"1h"},"lt":20}`:  {resource.ForAllow, map[int64]int64{1: 19, 20: MaxInteger}},
		`{"count":{"window":"1h"},"lte":20}`: {resource.ForAllow, map[int64]int64{1: 20, 21: MaxInteger}},
		`{"all":[{"count":{"window":"1h"},"gt":20},{"count":{"window":"1h"},"gte":6},{"count":{"window":"2h"},"gte":3}]}`: {
			resource.ForBlock, map[int64]int64{1: 5, 5: 5, 6: 20, 20: 20, 21: MaxInteger},
		},
	} {
		c, err := Compile(doc, Options{Side: tt.side})
		if err != nil {
			t.Fatal(err)
		}
		for n, want := range tt.upTo {
			if got := c.Counters[0].UpTo(n); got != want {
				t.Errorf("%s: up to %d for %d, want %d", doc, got, n, want)
			}
		}
	}
}

// TestCounter_PartsCoverTheWindow checks that the parts of a window together are never shorter
// than the window.
func TestCounter_PartsCoverTheWindow(t *testing.T) {
	for _, window := range []time.Duration{60 * time.Second, 61 * time.Second, 90 * time.Second, 119 * time.Second, time.Hour, 7 * 24 * time.Hour} {
		c := Counter{Window: window}
		if all := Buckets * c.Bucket(); all < window || all > window+Buckets*time.Millisecond || c.Bucket()%time.Millisecond != 0 {
			t.Errorf("%d parts of %v are %v, want %v", Buckets, c.Bucket(), all, window)
		}
	}
}
