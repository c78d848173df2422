package resource

import (
	"slices"
	"strings"
)

// readFile reads a file URL. Its readings keep file://.
func (t *text) readFile() *Error {
	rest, hosts := t.rest, []string{""}
	if s := slashed(rest); strings.HasPrefix(s, "//") {
		if !strings.HasPrefix(rest, "//") { // for some programs no host follows a backslash
			t.blocks.add(POSIX, "file://"+letters(posixPath("/"+strings.TrimPrefix(rest, "/"))))
		}
		authority := splitURL(s).authority
		rest = rest[len("//"):]
		if !isDrive(strings.Replace(authority, "|", ":", 1) + "/") { // file://C:/x names no host
			rest = rest[len(authority):]
			var err *Error
			if hosts, err = t.fileHosts(withoutUserInfo(authority)); err != nil {
				return err
			}
		}
	}
	if end := strings.IndexByte(rest, '/'); end > 0 && rest[0] == '\\' { // a host if one slash is read as two
		t.blocks.add(POSIX|DecodedPOSIX, "file://"+letters(posixPath(rest[end:])))
	}
	if strings.HasPrefix(slashed(rest), "/") {
		rest = rest[1:]
	}
	u := splitURL("///" + rest)
	if err := checkEscapedControls(u.path); err != nil {
		return err
	}
	for _, host := range hosts {
		t.readPath(host, u)
	}
	return nil
}

// readFilePath adds the readings of u's path after base, which is a scheme and a host.
func (t *text) readFilePath(base string, u url) {
	query := canonical(u.query)
	browsed := withDrive(resolve(slashed(u.path), fileDots))
	t.add(Browser, base+canonical(browsed)+query)
	for _, path := range clientPaths([]string{u.path}) {
		t.add(Client, base+canonical(path)+query)
	}
	t.add(POSIX, base+letters(posixPath(u.rest)))
	t.add(DecodedPOSIX, base+letters(posixPath(Decode(u.rest))))
	for _, path := range [...]string{u.rest, Decode(u.rest), browsed, Decode(browsed)} {
		t.add(Windows, base+letters(fileWindowsPath(path, windowsSegment)))
		t.add(Windows, base+letters(fileWindowsPath(windowsPath(path, strings.Clone), windowsSegment)))
		t.blocks.add(Windows, base+letters(fileWindowsPath(path, windowsName)))
	}
}

// fileDots returns the same as [encodedDots], except for a drive. If a drive is the first segment,
// a .. after it cannot leave it.
func fileDots(segment string) int {
	if len(segment) == 2 && isAlpha(segment[0]) && (segment[1] == ':' || segment[1] == '|') {
		return rootDots
	}
	return encodedDots(segment)
}

// withDrive returns path with a colon in place of the bar after a drive letter, as browsers read
// it.
func withDrive(path string) string {
	if len(path) >= 3 && isAlpha(path[1]) && path[2] == '|' && (len(path) == 3 || path[3] == '/') {
		return path[:2] + ":" + path[3:]
	}
	return path
}

// fileHosts returns the host of a file URL in all readings. localhost means no host. For some
// programs 127.0.0.1 means no host too.
func (t *text) fileHosts(authority string) ([]string, *Error) {
	if authority == "" {
		return []string{""}, nil
	}
	hosts, err := t.hosts(authority)
	switch {
	case err != nil:
		return nil, err
	case slices.Contains(hosts, "localhost"):
		return []string{""}, nil
	case slices.Contains(hosts, "127.0.0.1"):
		return []string{"", "127.0.0.1"}, nil
	}
	return hosts[:1], nil
}

// fileWindowsPath returns the [windowsPath] of a URL's path. In such a path a slash comes before a
// drive.
func fileWindowsPath(path string, name func(segment string) string) string {
	if drive := strings.TrimLeft(slashed(path), "/"); isDrive(drive) {
		return "/" + windowsPath(drive, name)
	}
	return windowsPath(path, name)
}
