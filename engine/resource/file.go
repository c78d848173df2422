package resource

import "strings"

// readFile reads a file URL. Its readings keep file://.
func (t *text) readFile() *Error {
	rest, host := t.rest, ""
	if s := slashed(rest); strings.HasPrefix(s, "//") {
		authority, _, _ := strings.Cut(s[len("//"):], "/")
		authority, _, _ = strings.Cut(authority, "?")
		authority, _, _ = strings.Cut(authority, "#")
		rest = rest[len("//"):]
		if !isDrive(strings.Replace(authority, "|", ":", 1) + "/") { // file://C:/x names no host
			rest = rest[len(authority):]
			hosts, err := t.fileHost(withoutUserInfo(authority))
			if err != nil {
				return err
			}
			host = hosts
		}
	}
	if slashed(rest) == rest && !strings.HasPrefix(rest, "/") || slashed(rest) != rest && !strings.HasPrefix(slashed(rest), "/") {
		rest = "/" + rest
	}
	u := splitURL("//" + rest)
	if err := checkEscapedControls(u.path); err != nil {
		return err
	}
	base, query := "file://"+host, canonical(u.query)
	t.add(Browser, base+canonical(withDrive(browserPath(u.path, true)))+query)
	for _, path := range clientPaths(u.path, false) {
		t.add(Client, base+canonical(path)+query)
	}
	t.add(POSIX, base+letters(posixPath(rest)))
	t.add(DecodedPOSIX, base+letters(posixPath(decode(rest))))
	for _, path := range [...]string{rest, decode(rest)} {
		t.add(Windows, base+letters(fileWindowsPath(path)))
	}
	return nil
}

// withDrive returns path with the bar of a drive as the colon that browsers take
// it for.
func withDrive(path string) string {
	if len(path) >= 3 && isAlpha(path[1]) && path[2] == '|' && (len(path) == 3 || path[3] == '/') {
		return path[:2] + ":" + path[3:]
	}
	return path
}

// fileHost returns the normal form of a file URL's host; localhost is none.
func (t *text) fileHost(authority string) (string, *Error) {
	if authority == "" || strings.EqualFold(authority, "localhost") {
		return "", nil
	}
	hosts, err := t.webHosts(authority)
	if err != nil {
		return "", err
	}
	return hosts[0], nil
}

// fileWindowsPath is [windowsPath] of the path of a URL, where a slash stands
// before a drive.
func fileWindowsPath(path string) string {
	if drive := strings.TrimLeft(slashed(path), "/"); isDrive(drive) {
		return "/" + windowsPath(drive)
	}
	return windowsPath(path)
}
