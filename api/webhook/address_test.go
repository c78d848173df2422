package webhook_test

import (
	"net/netip"
	"testing"

	"writ.example/writ/api/webhook"
)

func TestTargets_Permit(t *testing.T) {
	t.Parallel()
	allow := webhook.Targets{Allow: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("fd00::/8")}}
	for address, want := range map[string]struct{ public, allowed bool }{
		"93.184.216.34":        {true, true},
		"2606:2800:220:1::1":   {true, true},
		"::ffff:93.184.216.34": {true, true},
		"10.1.2.3":             {false, true},
		"::ffff:10.1.2.3":      {false, true},
		"fd12::1":              {false, true},
		"fd12::1%eth0":         {false, true},
		"10.2.0.1":             {}, "172.16.0.1": {}, "172.31.255.255": {}, "192.168.1.1": {}, "127.0.0.1": {}, "127.255.255.254": {},
		"0.0.0.0": {}, "0.1.2.3": {}, "169.254.169.254": {}, "100.64.0.1": {}, "100.127.255.255": {}, "192.0.0.192": {},
		"198.18.0.1": {}, "198.51.100.1": {}, "203.0.113.1": {}, "192.0.2.1": {}, "224.0.0.1": {}, "239.255.255.255": {},
		"240.0.0.1": {}, "255.255.255.255": {},
		"::": {}, "::1": {}, "fe80::1": {}, "fe80::1%eth0": {}, "fec0::1": {}, "fc00::1": {}, "ff02::1": {}, "::127.0.0.1": {},
		"::ffff:127.0.0.1": {}, "::ffff:169.254.169.254": {}, "64:ff9b::7f00:1": {}, "64:ff9b::5db8:d822": {}, "64:ff9b:1::1": {},
		"2002:7f00:1::": {}, "2001::1": {}, "2001:db8::1": {}, "100::1": {}, "4000::1": {}, "fd00:ec2::254": {false, true},
	} {
		a := netip.MustParseAddr(address)
		if err := (webhook.Targets{}).Permit(a, true); (err == nil) != want.public {
			t.Errorf("Permit(%s) = %v, want it permitted = %t", address, err, want.public)
		}
		if err := allow.Permit(a, true); (err == nil) != want.allowed {
			t.Errorf("Permit(%s) with allowed networks = %v, want it permitted = %t", address, err, want.allowed)
		}
		if err := allow.Permit(a, false); (err == nil) != (want.allowed && !want.public) {
			t.Errorf("Permit(%s) without TLS = %v, want it permitted in allowed networks alone", address, err)
		}
	}
	if err := (webhook.Targets{}).Permit(netip.Addr{}, true); err == nil {
		t.Error("no address is permitted")
	}
}

func TestTargets_CheckURL(t *testing.T) {
	t.Parallel()
	allow := webhook.Targets{Allow: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}
	for url, want := range map[string]struct{ public, allowed bool }{
		"https://example.com/hooks?a=b":  {true, true},
		"https://93.184.216.34":          {true, true},
		"https://[2606:2800:220:1::1]:8": {true, true},
		"http://10.0.0.1/x":              {false, true},
		"http://example.com":             {false, true}, // its address is checked later
		"https://10.0.0.1":               {false, true},
		"":                               {}, "example.com": {}, "https:///x": {}, "https://": {}, "ftp://example.com": {}, "https:example.com": {},
		"https://u:p@example.com": {}, "https://u@example.com": {}, "https://example.com/#x": {}, "https://example.com/#": {},
		"https://127.0.0.1": {}, "https://[::1]": {}, "https://[fe80::1%25eth0]": {}, "file:///etc/passwd": {}, "https://exa mple.com": {},
		"http://93.184.216.34": {},
	} {
		if err := (webhook.Targets{}).CheckURL(url); (err == nil) != want.public {
			t.Errorf("CheckURL(%q) = %v, want it good = %t", url, err, want.public)
		}
		if err := allow.CheckURL(url); (err == nil) != want.allowed {
			t.Errorf("CheckURL(%q) with allowed networks = %v, want it good = %t", url, err, want.allowed)
		}
	}
}
