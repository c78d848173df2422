package resource

import "strings"

// maxHosts bounds a list of hosts. Each is read with the whole path, so that the
// work grows with their product.
const maxHosts = 64

// readService reads a URL of another scheme. Its authority is a name or a list
// of them; nothing of it is refused.
func (t *text) readService() *Error {
	u := splitURL(t.rest)
	if err := checkEscapedControls(u.path); err != nil {
		return err
	}
	joined, hosts := t.serviceAuthority(withoutUserInfo(u.authority))
	t.readHierarchical(t.scheme+"://"+joined, u, false)
	t.cutAuthority(withoutUserInfo(u.authority), u)
	switch {
	case len(hosts) == 1 && hosts[0] == joined:
		return nil
	case len(hosts) > maxHosts:
		return &Error{"it lists more than 64 hosts"}
	}
	for _, host := range hosts {
		if strings.IndexByte(joined, ';') >= 0 { // what follows a semicolon is no host
			t.alsoBlocks(t.scheme+"://"+host, u, false)
		} else {
			t.readHierarchical(t.scheme+"://"+host, u, false)
		}
	}
	return nil
}

// cutAuthority has a block also look at a URL whose authority ends at the first
// character that no host has, as some parsers end it.
func (t *text) cutAuthority(authority string, u url) {
	host := authority
	if name, port := splitPort(authority); strings.Trim(port, "0123456789") == "" {
		host = name
	}
	allowed := "-_."
	if strings.ContainsAny(authority, ",;[") {
		allowed = "-_.:,;[]" // a list of hosts, or an address
	}
	end := strings.IndexFunc(host, func(r rune) bool {
		return r < 0x80 && !isAlpha(byte(r)) && !isDigit(byte(r)) && !strings.ContainsRune(allowed, r)
	})
	if end < 0 {
		return
	}
	u.path = "/" + authority[end:] + u.path
	joined, _ := t.serviceAuthority(authority[:end])
	t.alsoBlocks(t.scheme+"://"+joined, u, false)
}

// serviceAuthority returns the authority with each entry of the list, which
// commas and semicolons cut, in its normal form, and the entries that are a host
// with or without a port.
func (t *text) serviceAuthority(authority string) (joined string, hosts []string) {
	var b strings.Builder
	for authority != "" {
		end := strings.IndexAny(authority, ",;")
		if end < 0 {
			end = len(authority)
		}
		entry, isHost := t.hostPort(authority[:end])
		if isHost {
			hosts = append(hosts, entry)
		}
		b.WriteString(entry)
		if end < len(authority) {
			b.WriteByte(authority[end])
			end++
		}
		authority = authority[end:]
	}
	return b.String(), hosts
}

// hostPort returns the normal form of one entry and whether it is a host with
// or without a port; what is none stays as it is.
func (t *text) hostPort(entry string) (string, bool) {
	entry = strings.TrimSpace(canonical(asciiLower(canonical(entry))))
	name, port := splitPort(entry)
	port, ok := normalPort(port, t.scheme)
	if !ok || name == "" {
		return entry, false
	}
	if names, err := t.hostNames(name); err == nil {
		return names[0] + port, true
	}
	return entry, false
}
