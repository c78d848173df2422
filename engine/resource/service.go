package resource

import (
	"regexp"
	"slices"
	"strings"
)

// readService reads a URL of another scheme. rest is the text after the colon. The authority is a
// name or a list of names, and no authority is refused.
func (t *text) readService(rest string) (err *Error) {
	u := splitURL(rest)
	authority := withoutUserInfo(u.authority)
	t.forBlocks(func() {
		t.cutAuthority(authority, u)
		// for some programs the host comes after more slashes
		if after := strings.TrimLeft(u.path, "/"); u.authority == "" && after != u.path {
			err = t.readService("//" + after + u.query)
		}
	})
	joined, hosts := t.serviceAuthority(authority, 0)
	var odd []string
	if !t.pattern {
		odd = t.oddHosts(u.authority)
	}
	if len(hosts)+len(odd) > maxHosts {
		return &Error{"it lists more than 64 hosts"}
	}
	t.readHosts(joined, hosts, u)
	if other, hosts := t.serviceAuthority(authority, 1); other != joined {
		t.readHosts(other, hosts, u)
	}
	t.forBlocks(func() { t.readEach(odd, u) })
	return err
}

// oddHosts returns the hosts that some parser may find in an authority whose entries are not
// host:port. Such a host stands between characters that no host contains. oddHosts returns it
// without a port, and with each number after a colon as its port. User info ends at the first of
// several @. In some programs each entry has its own user info.
func (t *text) oddHosts(authority string) []string {
	if i := strings.IndexAny(authority, "@,;"); i >= 0 && authority[i] == '@' {
		authority = authority[i+1:]
	}
	var hosts []string
	add := func(entry string) {
		for name := range 2 {
			host, ok := t.hostPort(entry, name)
			if ok && !slices.Contains(hosts, host) && len(hosts) <= maxHosts { // more are refused
				hosts = append(hosts, host)
			}
		}
	}
	for entry := range strings.FieldsFuncSeq(authority, func(r rune) bool { return strings.ContainsRune(",;@", r) }) {
		if _, ok := t.hostPort(entry, 0); ok {
			if strings.Contains(authority, "@") {
				add(entry)
			}
			continue
		}
		for rest := canonical(entry); rest != ""; {
			host := rest[:hostEnd(rest)]
			if add(host); host == "" {
				rest = rest[1:]
				continue
			}
			ports := rest[len(host):]
			rest = ports[hostLength(ports, "-_.:"):]
			for port := range strings.SplitSeq(ports[:len(ports)-len(rest)], ":") {
				add(host + ":" + port[:len(port)-len(strings.TrimLeft(port, digits))])
			}
		}
	}
	return hosts
}

// hostEnd returns the index of the end of the host at the start of s.
func hostEnd(s string) int {
	if end := strings.IndexByte(s, ']'); s[0] == '[' && end > 0 {
		if _, ok := normalIPv6(s[:end+1]); ok {
			return end + 1
		}
	}
	return hostLength(s, "-_.")
}

// readHosts adds the readings of an authority and of each host in it.
func (t *text) readHosts(joined string, hosts []string, u url) {
	t.readPath(joined, u)
	hosts = slices.DeleteFunc(hosts, func(host string) bool { return host == joined })
	if strings.IndexByte(joined, ';') >= 0 { // the text after a semicolon is not a host
		t.forBlocks(func() { t.readEach(hosts, u) })
	} else {
		t.readEach(hosts, u)
	}
}

func (t *text) readEach(hosts []string, u url) {
	for _, host := range hosts {
		t.readPath(host, u)
	}
}

// cutAuthority adds readings for a block. They are for parsers that end an authority at the first
// text that continues neither a host, a port nor a list of hosts. The host is read with and
// without its port. The remaining text is read as the start of the path, or dropped.
func (t *text) cutAuthority(authority string, u url) {
	host := 0
	if authority != "" {
		host = hostEnd(authority)
	}
	port := host
	if strings.HasPrefix(authority[host:], ":") {
		port = len(authority) - len(strings.TrimLeft(authority[host+1:], digits))
	}
	if port == len(authority) {
		return
	}
	ends := []int{host, port}
	if list := hostLength(authority, "-_.:,;[]"); list > port && list < len(authority) {
		ends = append(ends, list)
	}
	for _, end := range ends {
		joined, _ := t.serviceAuthority(authority[:end], 0)
		for _, path := range [...]string{u.path, "/" + authority[end:] + u.path} {
			t.readPath(joined, url{path: path, query: u.query})
		}
	}
}

const digits = "0123456789"

func hostLength(s, marks string) int {
	return len(s) - len(strings.TrimLeftFunc(s, func(r rune) bool {
		return r >= 0x80 || isAlpha(byte(r)) || isDigit(byte(r)) || strings.ContainsRune(marks, r)
	}))
}

// serviceAuthority returns the authority with each entry in its normal form. It also returns the
// entries that are a host with or without a port. Commas and semicolons separate entries. If
// clients know several names for a host, name is the index of the name to use. If there are fewer
// names, the last name is used.
func (t *text) serviceAuthority(authority string, name int) (joined string, hosts []string) {
	joined = listed.ReplaceAllStringFunc(authority, func(entry string) string {
		entry, isHost := t.hostPort(entry, name)
		if isHost {
			hosts = append(hosts, entry)
		}
		return entry
	})
	return joined, hosts
}

// listed matches an entry of a list.
var listed = regexp.MustCompile(`[^,;]+`)

// hostPort returns the normal form of an entry that is a host with or without a port, and true.
// For any other entry it returns the entry in lower case, and false.
func (t *text) hostPort(entry string, name int) (string, bool) {
	entry = strings.TrimSpace(canonical(asciiLower(canonical(entry))))
	names, _ := t.hosts(entry)
	if len(names) == 0 {
		return entry, false
	}
	return names[min(name, len(names)-1)], true
}
