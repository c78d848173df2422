package resource

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// defaultPorts has the ports that URLs may omit, by scheme. The map never changes.
var defaultPorts = map[string]string{
	"http": "80", "ws": "80", "https": "443", "wss": "443", "ftp": "21", "ssh": "22", "sftp": "22",
	"postgres": "5432", "postgresql": "5432", "mysql": "3306", "mariadb": "3306", "sqlserver": "1433",
	"mongodb": "27017", "redis": "6379", "rediss": "6379", "amqp": "5672", "amqps": "5671",
	"ldap": "389", "ldaps": "636", "nats": "4222", "mqtt": "1883", "mqtts": "8883", "kafka": "9092",
	"smb": "445", "nfs": "2049", "ftps": "990", "git": "9418", "rsync": "873",
}

// defaultPort returns the default port of a scheme. It ignores a jdbc: or git+ before the scheme.
func defaultPort(scheme string) string {
	return defaultPorts[strings.TrimPrefix(strings.TrimPrefix(scheme, "jdbc:"), "git+")]
}

// profiles has the two ways of UTS 46 to map ß, ς and the joiners. Browsers keep these characters,
// older clients replace or drop them. The array never changes.
var profiles = [...]*idna.Profile{hostProfile(false), hostProfile(true)}

func hostProfile(transitional bool) *idna.Profile {
	return idna.New(idna.MapForLookup(), idna.Transitional(transitional), idna.StrictDomainName(false),
		idna.CheckHyphens(false), idna.CheckJoiners(!transitional), idna.BidiRule())
}

// hosts returns the host and port of an authority in all readings. If there is an error too, some
// clients find no host, and other clients find the returned hosts.
func (t *text) hosts(authority string) ([]string, *Error) {
	name, port := splitPort(authority)
	port, ok := normalPort(port, t.scheme)
	if !ok || port == ":0" && t.form != formService { // clients differ over port 0: some read it as no port
		return nil, &Error{"its port is not a number from 1 to 65535"}
	}
	names, err := t.hostNames(name)
	for i := range names {
		names[i] += port
	}
	return names, err
}

// splitPort cuts the port off an authority without user info.
func splitPort(authority string) (host, port string) {
	if colon := strings.LastIndexByte(authority, ':'); colon > strings.LastIndexByte(authority, ']') {
		return authority[:colon], authority[colon+1:]
	}
	return authority, ""
}

// normalPort returns a colon and the port. It returns "" if the port is empty or is the scheme's
// default port.
func normalPort(port, scheme string) (string, bool) {
	if port == "" {
		return "", true
	}
	if strings.ContainsFunc(port, IsWild) {
		return ":" + port, true
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if port = strconv.FormatUint(n, 10); err != nil || port == defaultPort(scheme) {
		return "", err == nil
	}
	return ":" + port, true
}

// hostNames returns the names that clients look up for host, which has no port. If there is an
// error too, some clients look up no name, and other clients look up the returned names.
func (t *text) hostNames(host string) ([]string, *Error) {
	if strings.HasPrefix(host, "[") {
		address, ok := normalIPv6(host)
		if !ok {
			return nil, &Error{"its host is not a valid IPv6 address"}
		}
		return []string{address}, nil
	}
	if hasEscape(host) {
		return nil, &Error{"its host has an escape"}
	}
	var names []string
	var failed *Error
	for _, profile := range profiles {
		name, err := t.mapHost(host, profile)
		if err == nil && endsInNumber(name) {
			name, err = normalIPv4(name)
		}
		switch {
		case err != nil:
			failed = err
		case !slices.Contains(names, name):
			names = append(names, name)
		}
	}
	return names, failed
}

// mapHost maps host to lower-case ASCII by UTS 46 and checks its labels.
func (t *text) mapHost(host string, profile *idna.Profile) (string, *Error) {
	if len(host) > MaxLength/8 { // UTS 46 takes more than linear time; a name in the DNS has at most 253 characters
		return "", &Error{"its host is longer than 1024 bytes"}
	}
	host = asciiLower(host)
	if !isASCII(host) || strings.Contains(host, "xn--") {
		mapped, err := t.mapLabels(host, profile)
		if err != nil {
			return "", &Error{"its host is not a valid domain name"}
		}
		host = mapped
	}
	for label := range strings.SplitSeq(strings.TrimSuffix(host, "."), ".") {
		if label == "" || strings.ContainsFunc(label, func(r rune) bool { return !t.isHostRune(r) }) {
			return "", &Error{"its host is neither an address nor labels of letters, digits, - and _"}
		}
	}
	return strings.TrimSuffix(host, "."), nil
}

func (t *text) isHostRune(r rune) bool {
	return 'a' <= r && r <= 'z' || '0' <= r && r <= '9' || r == '-' || r == '_' || t.pattern && IsWild(r)
}

// mapLabels maps host by UTS 46. Labels with wildcards stay unchanged.
func (t *text) mapLabels(host string, profile *idna.Profile) (string, error) {
	// Revisions of UTS 46 differ over ẞ. Older revisions map it to ss, as transitional mapping
	// maps ß.
	labels := []string{strings.ReplaceAll(host, "ẞ", "ß")}
	if strings.ContainsFunc(host, IsWild) {
		labels = strings.Split(labels[0], ".")
	}
	for i, label := range labels {
		if strings.ContainsFunc(label, IsWild) {
			continue
		}
		var err error
		if labels[i], err = profile.ToASCII(label); err != nil {
			return "", err
		}
	}
	return strings.Join(labels, "."), nil
}

// normalIPv6 returns the address between brackets in its shortest form. A zone stays. An address
// that maps an IPv4 address becomes the IPv4 address.
func normalIPv6(host string) (string, bool) {
	inner, ok := strings.CutSuffix(strings.TrimPrefix(host, "["), "]")
	if !ok {
		return "", false
	}
	if strings.ContainsFunc(inner, IsWild) {
		return asciiLower(host), true
	}
	address, zone, zoned := strings.Cut(inner, "%")
	addr, err := netip.ParseAddr(address)
	if err != nil || !addr.Is6() || strings.ContainsAny(zone, "[]") {
		return "", false
	}
	switch addr = addr.Unmap(); {
	case addr.Is4():
		return addr.String(), true
	case zoned:
		return "[" + addr.String() + "%25" + canonical(strings.TrimPrefix(zone, "25")) + "]", true
	}
	return "[" + addr.String() + "]", true
}

// endsInNumber reports whether host ends in a number by the WHATWG URL standard. Browsers read
// such a host as an IPv4 address or refuse it.
func endsInNumber(host string) bool {
	last := host[strings.LastIndexByte(host, '.')+1:]
	if last == "" || !isDigit(last[0]) {
		return false
	}
	_, ok := ipv4Part(last)
	return ok || strings.Trim(last, digits) == ""
}

// normalIPv4 reads a host that inet_aton and browsers read as an IPv4 address. It has one to four
// parts, and each part is decimal, octal or hexadecimal. The last part fills all remaining bytes.
func normalIPv4(host string) (string, *Error) {
	parts := strings.Split(host, ".")
	var addr uint64
	for i, part := range parts {
		n, ok := ipv4Part(part)
		bits := 8
		if i == len(parts)-1 {
			bits = 32 - 8*i
		}
		if !ok || i > 3 || n>>bits != 0 {
			return "", &Error{"its host is not a valid IPv4 address"}
		}
		addr |= n << (32 - 8*i - bits)
	}
	return netip.AddrFrom4([4]byte{byte(addr >> 24), byte(addr >> 16), byte(addr >> 8), byte(addr)}).String(), nil
}

func ipv4Part(s string) (uint64, bool) {
	base := 10
	switch {
	case len(s) >= 2 && s[0] == '0' && s[1]|0x20 == 'x':
		if s, base = s[2:], 16; s == "" {
			return 0, true
		}
	case len(s) >= 2 && s[0] == '0':
		s, base = s[1:], 8
	}
	n, err := strconv.ParseUint(s, base, 64)
	return n, err == nil
}

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r >= utf8.RuneSelf })
}
