package api

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"writ/engine"
)

// RateLimit is a token bucket: it holds at most Burst requests and gets Rate of
// them back a second. The zero RateLimit limits nothing.
//
// As text it is a count, a unit of time (s, m or h), and the burst, which is
// the count if it is left out:
//
//	limit = "off" | "0" | count "/" ("s" | "m" | "h") [ ":" burst ]
//
// Worked example: 100/s:1000 lets 1,000 requests through at once and then 100
// a second.
type RateLimit struct {
	Rate  float64
	Burst int
}

var errRateLimit = errors.New("want off, or a rate and a burst such as 100/s:1000, 30/m or 500/h:50")

// UnmarshalText implements encoding.TextUnmarshaler.
func (l *RateLimit) UnmarshalText(text []byte) error {
	s := string(text)
	if s == "off" || s == "0" {
		*l = RateLimit{}
		return nil
	}
	count, rest, ok := strings.Cut(s, "/")
	unit, burst, given := strings.Cut(rest, ":")
	seconds := map[string]float64{"s": 1, "m": 60, "h": 3600}[unit]
	if !ok || seconds == 0 {
		return errRateLimit
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
	*l = RateLimit{Rate: float64(n) / seconds, Burst: b}
	return nil
}

func requests(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0, errRateLimit
	}
	if n < 1 || n > engine.MaxSetting {
		return 0, fmt.Errorf("%d requests: want 1 to %d, or off for no limit", n, engine.MaxSetting)
	}
	return n, nil
}

func (l RateLimit) on() bool { return l != RateLimit{} }

func (l RateLimit) check() error {
	if l.on() && (l.Burst < 1 || l.Burst > engine.MaxSetting || !(l.Rate > 0 && l.Rate <= engine.MaxSetting)) {
		return fmt.Errorf("a rate of %v a second and a burst of %d: want both above 0 and at most %d", l.Rate, l.Burst,
			engine.MaxSetting)
	}
	return nil
}

// RateLimits say how many requests are answered before one is refused with a
// 429. What is zero is off.
type RateLimits struct {
	// Credential is for the requests of one API key or operator, except
	// evaluations.
	Credential RateLimit
	// Evaluate is for the evaluations of one API key or operator.
	Evaluate RateLimit
	// Changes is for what an organization makes or changes of documents, whoever
	// asks: policies, rules, keys and agents that are made, rules that are changed,
	// agents that are enabled. Each leaves an entry in the history for good. What takes
	// something back is never refused: it undoes one of these, once.
	Changes RateLimit
	// Address is for the requests of one address that come without a credential
	// known to be good: public documents, unknown paths, refused credentials, and
	// the first use of a good one. An IPv6 address stands for its /64.
	//
	// An address that has used it up can still use the credentials that this
	// process has accepted before. So whoever shares it is not locked out by
	// another's guesses, and guesses neither reach the store nor verify a
	// signature.
	Address RateLimit
	// TrustedProxies are the networks whose X-Forwarded-For is believed.
	TrustedProxies []netip.Prefix
}

func (l RateLimits) check() error {
	for _, limit := range []struct {
		name  string
		limit RateLimit
	}{{"credential", l.Credential}, {"evaluate", l.Evaluate}, {"changes", l.Changes}, {"address", l.Address}} {
		if err := limit.limit.check(); err != nil {
			return fmt.Errorf("rate limit of %s: %w", limit.name, err)
		}
	}
	return nil
}
