// Package limit bounds the requests of one caller. A [Limiter] is a rate limit with token buckets.
// A [Tally] bounds the number of simultaneous requests. A caller without a credential is identified
// by its [Address].
package limit

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"writ.example/writ/engine"
)

// Rate is the size of a token bucket. The bucket holds at most Burst requests and regains PerSecond
// of them each second. The zero Rate limits nothing.
//
// Its text form is a count, a unit of time (s, m or h), and the burst. The default burst is the
// count.
//
//	limit = "off" | "0" | count "/" ("s" | "m" | "h") [ ":" burst ]
//
// Worked example: 100/s:1000 accepts 1,000 requests at once and then 100 a second.
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
