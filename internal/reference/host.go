package reference

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/idna"
)

var defaultPorts = map[string]int{
	"http": 80, "ws": 80, "https": 443, "wss": 443, "ftp": 21, "ssh": 22, "sftp": 22, "postgres": 5432,
	"postgresql": 5432, "mysql": 3306, "mariadb": 3306, "sqlserver": 1433, "mongodb": 27017, "redis": 6379,
	"rediss": 6379, "amqp": 5672, "amqps": 5671, "ldap": 389, "ldaps": 636, "nats": 4222, "mqtt": 1883,
	"mqtts": 8883, "kafka": 9092, "smb": 445, "nfs": 2049, "ftps": 990, "git": 9418, "rsync": 873,
}

// idn maps host names by UTS 46. The key true selects the transitional mapping. hostName checks the
// result.
var idn = map[bool]*idna.Profile{
	true:  idna.New(idna.MapForLookup(), idna.Transitional(true), idna.StrictDomainName(false), idna.CheckHyphens(false), idna.CheckJoiners(false)),
	false: idna.New(idna.MapForLookup(), idna.Transitional(false), idna.StrictDomainName(false), idna.CheckHyphens(false), idna.CheckJoiners(false)),
}

// mapHost returns the host in lower case. If the host is not ASCII, it is mapped by UTS 46.
func mapHost(host text, transitional bool) (text, error) {
	if isASCII(host) {
		return eachRun(host, strings.ToLower), nil
	}
	if slices.ContainsFunc(host, isWild) {
		return mapWildHost(host, transitional)
	}
	// Versions of UTS 46 map U+1E9E either to ss or to ß. Here it is always ß.
	s, err := idn[transitional].ToASCII(strings.ReplaceAll(show(host), "ẞ", "ß"))
	return text(s), err
}

// mapWildHost maps those labels of a host that have no wildcard.
func mapWildHost(host text, transitional bool) (text, error) {
	labels := splitText(host, '.')
	for i, label := range labels {
		if !isASCII(label) && slices.ContainsFunc(label, isWild) {
			return nil, fmt.Errorf("the label %q of the host holds a wildcard beside letters that are written in another form", show(label))
		}
		mapped, err := mapHost(label, transitional)
		if err != nil {
			return nil, err
		}
		labels[i] = mapped
	}
	return joinText(labels, '.'), nil
}

func isASCII(t text) bool {
	return !slices.ContainsFunc(t, func(r rune) bool { return r > 127 && !isWild(r) })
}

// hostName returns one reading of a host, which is an address or a name.
func hostName(host text, transitional bool) (text, error) {
	if len(host) > 0 && host[0] == '[' {
		return ipv6(host)
	}
	h, err := mapHost(host, transitional)
	if err != nil {
		return nil, fmt.Errorf("the host %q is no name: %w", show(host), err)
	}
	if n := len(h); n > 0 && h[n-1] == '.' {
		h = h[:n-1]
	}
	if v4, ok := ipv4(show(h)); ok && !slices.ContainsFunc(h, isWild) {
		return text(v4), nil
	}
	for _, label := range splitText(h, '.') {
		if len(label) == 0 || slices.ContainsFunc(label, notInLabel) {
			return nil, fmt.Errorf("the host %q is neither an address nor a name of letters, digits, - and _", show(host))
		}
	}
	return h, nil
}

func notInLabel(r rune) bool {
	return !isWild(r) && !isASCIILetter(r) && (r < '0' || r > '9') && r != '-' && r != '_'
}

// ipv4 parses an IPv4 address in every spelling that WHATWG accepts. An address has one to four
// numbers, each decimal, octal (0…) or hexadecimal (0x…).
func ipv4(host string) (string, bool) {
	parts := strings.Split(host, ".")
	if len(parts) > 4 {
		return "", false
	}
	var sum uint64
	for i, part := range parts {
		n, ok := ipv4Number(part)
		last := i == len(parts)-1
		if !ok || !last && n > 255 || last && n >= 1<<(8*(5-len(parts))) {
			return "", false
		}
		if last {
			sum += n
		} else {
			sum += n << (8 * (3 - i))
		}
	}
	return netip.AddrFrom4([4]byte{byte(sum >> 24), byte(sum >> 16), byte(sum >> 8), byte(sum)}).String(), true
}

func ipv4Number(s string) (uint64, bool) {
	base := 10
	switch lower := strings.ToLower(s); {
	case s == "":
		return 0, false
	case strings.HasPrefix(lower, "0x"):
		base, s = 16, s[2:]
	case len(s) > 1 && s[0] == '0':
		base, s = 8, s[1:]
	}
	if s == "" {
		return 0, true
	}
	if strings.ContainsAny(s, "+_") {
		return 0, false
	}
	n, err := strconv.ParseUint(s, base, 40)
	return n, err == nil
}

// ipv6 parses an address in brackets. For an IPv4-mapped address it returns the IPv4 address.
func ipv6(host text) (text, error) {
	if slices.ContainsFunc(host, isWild) {
		return nil, fmt.Errorf("an address in brackets holds no wildcard")
	}
	s := show(host)
	addr, zone, _ := strings.Cut(strings.Trim(s, "[]"), "%")
	zone = strings.TrimPrefix(zone, "25")
	ip, err := netip.ParseAddr(addr)
	if err != nil || !ip.Is6() || s[len(s)-1] != ']' {
		return nil, fmt.Errorf("%s is no IPv6 address", s)
	}
	if ip.Is4In6() {
		return text(ip.Unmap().String()), nil
	}
	if zone != "" {
		return concat(text("["+ip.String()), text{escaped | '%'}, text(zone), text("]")), nil
	}
	return text("[" + ip.String() + "]"), nil
}

// splitPort separates a host from its port. port is nil if there is no colon.
func splitPort(t text) (host, port text) {
	from := 0
	if len(t) > 0 && t[0] == '[' {
		from = max(0, slices.Index(t, ']'))
	}
	i := slices.Index(t[from:], ':')
	if i < 0 {
		return t, nil
	}
	return t[:from+i], t[from+i:]
}

// portOf parses a port such as ":80". The result is empty for the scheme's default port.
func portOf(port text, scheme string) (text, error) {
	if len(port) < 2 {
		return nil, nil
	}
	if slices.ContainsFunc(port, isWild) {
		return port, nil
	}
	digits := show(port[1:])
	n, err := strconv.ParseUint(digits, 10, 64)
	if err != nil || n > 65535 || strings.HasPrefix(digits, "+") {
		return nil, fmt.Errorf("the port %q is no number up to 65535", digits)
	}
	if defaultPorts[scheme] == int(n) {
		return nil, nil
	}
	return text(":" + strconv.FormatUint(n, 10)), nil
}

// hostPort returns the reading of host:port under one of the two mappings of UTS 46.
func hostPort(t text, scheme string, transitional bool) (text, error) {
	host, port := splitPort(t)
	p, err := portOf(port, scheme)
	if err != nil {
		return nil, err
	}
	h, err := hostName(host, transitional)
	return concat(h, p), err
}
