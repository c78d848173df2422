package engine

import (
	"net/netip"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// defaultPorts are the ports that a URL of a scheme need not spell. Hosts of
// these schemes are network addresses, so that an IPv4 address is recognised
// in each of its spellings; a host of another scheme is a mere name. The table
// never changes.
var defaultPorts = map[string]string{
	"amqp": "5672", "amqps": "5671", "ftp": "21", "ftps": "990", "git": "9418",
	"http": "80", "https": "443", "imap": "143", "imaps": "993", "kafka": "9092",
	"ldap": "389", "ldaps": "636", "mongodb": "27017", "mssql": "1433",
	"mysql": "3306", "nats": "4222", "oracle": "1521", "postgres": "5432",
	"postgresql": "5432", "redis": "6379", "rediss": "6379", "rtsp": "554",
	"sftp": "22", "smb": "445", "smtp": "25", "sqlserver": "1433", "ssh": "22",
	"telnet": "23", "vnc": "5900", "ws": "80", "wss": "443",
}

// isSpecial reports whether browsers read URLs of the scheme as hierarchical
// however they are punctuated.
func isSpecial(scheme string) bool {
	switch scheme {
	case "http", "https", "ws", "wss", "ftp", "file":
		return true
	}
	return false
}

// forbiddenHost are the characters that no host may have once it is decoded
// and mapped: the WHATWG URL standard's forbidden domain code points.
const forbiddenHost = " #/:<>?@[\\]^|%\"`{}"

// maxHostLength bounds the mapping, whose time is not linear; names in the DNS
// have at most 253 characters.
const maxHostLength = 1024

// normalAuthority returns the normal form of an authority: user info and a
// default or empty port dropped, every host in its normal form.
func normalAuthority(authority, scheme string) (string, *ResourceError) {
	if i := strings.IndexByte(authority, '@'); i >= 0 {
		authority = authority[i+1:]
		if strings.IndexByte(authority, '@') >= 0 {
			return "", &ResourceError{"its host has more than one @ before it"}
		}
	}
	if isSpecial(scheme) || strings.IndexByte(authority, ',') < 0 {
		return normalHostPort(authority, scheme)
	}
	hosts := strings.Split(authority, ",")
	for i, h := range hosts {
		var err *ResourceError
		if hosts[i], err = normalHostPort(h, scheme); err != nil {
			return "", err
		}
	}
	return strings.Join(hosts, ","), nil
}

func normalHostPort(s, scheme string) (string, *ResourceError) {
	host, port := s, ""
	if i := strings.LastIndexByte(s, ':'); i > strings.LastIndexByte(s, ']') {
		host, port = s[:i], s[i+1:]
	}
	port, err := normalPort(port, scheme)
	if err != nil {
		return "", err
	}
	_, network := defaultPorts[scheme]
	host, err = normalHost(host, network || scheme == "file")
	if err != nil {
		return "", err
	}
	if port != "" {
		return host + ":" + port, nil
	}
	return host, nil
}

func normalPort(port, scheme string) (string, *ResourceError) {
	if port == "" {
		return "", nil
	}
	for i := range len(port) {
		if !isDigit(port[i]) {
			return "", &ResourceError{"its port is not a number"}
		}
	}
	port = strings.TrimLeft(port[:len(port)-1], "0") + port[len(port)-1:]
	if n, err := strconv.Atoi(port); err != nil || n > 65535 {
		return "", &ResourceError{"its port is greater than 65535"}
	}
	if port == defaultPorts[scheme] {
		return "", nil
	}
	return port, nil
}

// normalHost returns the host that a browser would ask for, in ASCII and
// without its trailing dot. Where network is set, whatever reads as an IPv4
// address becomes one; an IPv4 address in IPv6 clothes is the IPv4 address.
func normalHost(host string, network bool) (string, *ResourceError) {
	if strings.HasPrefix(host, "[") {
		return normalIPv6(host)
	}
	if strings.IndexByte(host, '%') >= 0 {
		host = decodeExcept(host, "")
	}
	host, err := mapHost(host)
	if err != nil {
		return "", err
	}
	if host = strings.TrimSuffix(host, "."); host == "" {
		return "", &ResourceError{"its host is empty"}
	}
	for label := range strings.SplitSeq(host, ".") {
		if label == "" {
			return "", &ResourceError{"its host has an empty label"}
		}
	}
	if network && endsInNumber(host) {
		return normalIPv4(host)
	}
	return host, nil
}

// mapHost maps a decoded host name to lower-case ASCII by UTS 46, as browsers
// do: non-transitional, underscores and odd hyphens allowed.
func mapHost(host string) (string, *ResourceError) {
	if len(host) > maxHostLength {
		return "", &ResourceError{"its host is longer than 1024 bytes"}
	}
	ascii := isASCII(host)
	host = asciiLower(host)
	if !ascii || strings.HasPrefix(host, "xn--") || strings.Contains(host, ".xn--") {
		mapped, err := hostProfile.ToASCII(host)
		if err != nil {
			return "", &ResourceError{"its host is not a valid domain name"}
		}
		host = mapped
	}
	for i := range len(host) {
		if c := host[i]; c <= ' ' || c >= 0x7F || strings.IndexByte(forbiddenHost, c) >= 0 {
			return "", &ResourceError{"its host has a character that no host can have"}
		}
	}
	return host, nil
}

// hostProfile maps hosts as browsers do. It never changes.
var hostProfile = idna.New(
	idna.MapForLookup(),
	idna.Transitional(false),
	idna.StrictDomainName(false),
	idna.CheckHyphens(false),
	idna.CheckJoiners(true),
	idna.BidiRule(),
)

// displayHost returns a normal host as people read it, in Unicode.
func displayHost(host string) string {
	if !strings.Contains(host, "xn--") {
		return host
	}
	unicode, err := hostProfile.ToUnicode(host)
	if err != nil {
		return host
	}
	return unicode
}

func normalIPv6(host string) (string, *ResourceError) {
	inner, ok := strings.CutSuffix(host[1:], "]")
	addr, err := netip.ParseAddr(inner)
	if !ok || err != nil || !addr.Is6() || addr.Zone() != "" {
		return "", &ResourceError{"its host is not a valid IPv6 address"}
	}
	if addr = addr.Unmap(); addr.Is4() {
		return addr.String(), nil
	}
	return "[" + addr.String() + "]", nil
}

// endsInNumber reports whether browsers would read host as an IPv4 address or
// not at all.
func endsInNumber(host string) bool {
	last := host[strings.LastIndexByte(host, '.')+1:]
	if _, ok := parseIPv4Part(last); ok {
		return true
	}
	for i := range len(last) {
		if !isDigit(last[i]) {
			return false
		}
	}
	return true
}

// normalIPv4 reads the spellings of an IPv4 address that inet_aton and
// browsers accept, which [netip.ParseAddr] rightly does not: one to four
// parts, each decimal, octal or hexadecimal, the last filling what is left.
func normalIPv4(host string) (string, *ResourceError) {
	invalid := &ResourceError{"its host is not a valid IPv4 address"}
	parts := strings.Split(host, ".")
	if len(parts) > 4 {
		return "", invalid
	}
	var addr uint64
	for i, part := range parts {
		n, ok := parseIPv4Part(part)
		if !ok {
			return "", invalid
		}
		if i < len(parts)-1 {
			if n > 255 {
				return "", invalid
			}
			addr |= n << (24 - 8*i)
			continue
		}
		if n >= 1<<(32-8*i) {
			return "", invalid
		}
		addr |= n
	}
	return netip.AddrFrom4([4]byte{byte(addr >> 24), byte(addr >> 16), byte(addr >> 8), byte(addr)}).String(), nil
}

func parseIPv4Part(s string) (uint64, bool) {
	base := 10
	switch {
	case len(s) >= 2 && s[0] == '0' && s[1]|0x20 == 'x':
		if s, base = s[2:], 16; s == "" {
			return 0, true
		}
	case len(s) >= 2 && s[0] == '0':
		s, base = s[1:], 8
	}
	if s == "" || s[0] == '+' || s[0] == '-' || strings.IndexByte(s, '_') >= 0 {
		return 0, false
	}
	n, err := strconv.ParseUint(s, base, 64)
	return n, err == nil
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// asciiLower returns s with ASCII letters in lower case; other letters are for
// UTS 46 to map.
func asciiLower(s string) string {
	for i := range len(s) {
		if 'A' <= s[i] && s[i] <= 'Z' {
			b := []byte(s)
			for j := i; j < len(b); j++ {
				if 'A' <= b[j] && b[j] <= 'Z' {
					b[j] |= 0x20
				}
			}
			return string(b)
		}
	}
	return s
}
