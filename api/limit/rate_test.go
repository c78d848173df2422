package limit

import (
	"math"
	"net/netip"
	"testing"

	"writ.example/writ/engine"
)

func TestRateLimit_Text(t *testing.T) {
	for text, want := range map[string]Rate{
		"off": {}, "0": {}, "100/s:1000": {100, 1000}, "30/m": {0.5, 30}, "3600/h:1": {1, 1}, "1/s": {1, 1},
	} {
		var got Rate
		if err := got.UnmarshalText([]byte(text)); err != nil || got != want {
			t.Errorf("UnmarshalText(%q) = %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "100", "/s", "100/", "100/s:", "100/d", "100/s:x", "x/s", "-1/s", "0/s", "1.5/s", "1/s:0", "1/s:-1", "1000001/s", "1/s:1000001",
		"100/s:10:1", " 1/s", "1/s ", "99999999999999999999/s", "OFF",
	} {
		var got Rate
		if err := got.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("UnmarshalText(%q) = %v, want an error", text, got)
		}
	}
}

func TestRate_Check(t *testing.T) {
	for _, bad := range []Rate{{PerSecond: 1}, {Burst: 1}, {-1, 1}, {1, -1}, {math.NaN(), 1}, {math.Inf(1), 1}, {1, engine.MaxSetting + 1}} {
		if err := bad.Check(); err == nil {
			t.Errorf("Check(%+v) = nil, want an error", bad)
		}
	}
}

func TestAddressOf_IPv6IsItsSlash64(t *testing.T) {
	at := func(s string) Address { return AddressOf(netip.MustParseAddr(s)) }
	if at("2001:db8:0:1::1") != at("2001:db8:0:1:ffff::9") {
		t.Error("two addresses of one /64 are told apart, want one")
	}
	if at("2001:db8:0:1::1") == at("2001:db8:0:2::1") {
		t.Error("two /64 are one, want two")
	}
	if at("192.0.2.1") == at("192.0.2.2") {
		t.Error("two IPv4 addresses are one, want two")
	}
	if at("192.0.2.1") != at("::ffff:192.0.2.1") {
		t.Error("an IPv4 address and its IPv6 spelling are two, want one")
	}
}
