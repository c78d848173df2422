// Package limit bounds the requests of one caller. A [Limiter] bounds them over time with token buckets. A [Tally]
// bounds how many are under way at once. A caller without a credential is counted by its [Address].
package limit

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"writ/engine"
)

// Rate is a token bucket. It holds at most Burst requests and gets PerSecond of them back each second. The zero Rate
// limits nothing.
//
// As text it has a count, a unit of time (s, m or h), and the burst. If the burst is left out, it equals the count.
//
//	limit = "off" | "0" | count "/" ("s" | "m" | "h") [ ":" burst ]
//
// Worked example: 100/s:1000 lets 1,000 requests through at once and then 100
// a second.
type Rate struct {
	PerSecond float64
	Burst     int
}

var errRate = errors.New("want off, or a rate and a burst such as 100/s:1000, 30/m or 500/h:50")

// UnmarshalText implements encoding.TextUnmarshaler.
func (l *Rate) UnmarshalText(text []byte) error {
	s := string(text)
	if s == "off" || s == "0" {
		*l = Rate{}
		return nil
	}
	count, rest, ok := strings.Cut(s, "/")
	unit, burst, given := strings.Cut(rest, ":")
	seconds := map[string]float64{"s": 1, "m": 60, "h": 3600}[unit]
	if !ok || seconds == 0 {
		return errRate
	}
	n, err := requests(count)
	if err != nil {
		return err
	}
	b := n
	if given {
		if b, err = requests(burst); err != nil {
			return err
		}
	}
	*l = Rate{PerSecond: float64(n) / seconds, Burst: b}
	return nil
}

func requests(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0, errRate
	}
	if n < 1 || n > engine.MaxSetting {
		return 0, fmt.Errorf("%d requests: want 1 to %d, or off for no limit", n, engine.MaxSetting)
	}
	return n, nil
}

func (l Rate) on() bool { return l != Rate{} }

// Check returns an error if no bucket can have the rate l.
func (l Rate) Check() error {
	within := l.Burst >= 1 && l.Burst <= engine.MaxSetting && l.PerSecond > 0 && l.PerSecond <= engine.MaxSetting
	if l.on() && !within {
		return fmt.Errorf(
			"a rate of %v a second and a burst of %d: want both above 0 and at most %d", l.PerSecond, l.Burst,
			engine.MaxSetting)
	}
	return nil
}
