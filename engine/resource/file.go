package resource

import (
	"slices"
	"strings"
)

// readFile reads a file URL. Its readings keep file://.
func (t *text) readFile() *Error {
	rest, hosts := t.rest, []string{""}
	if s := slashed(rest); strings.HasPrefix(s, "//") {
		if !strings.HasPrefix(rest, "//") { // to some a backslash begins no host
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
	if end := strings.IndexByte(rest, '/'); end > 0 && rest[0] == '\\' { // a host to those that read one slash as two
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

// readFilePath adds the readings of a path behind base, a scheme and a host.
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
		t.add(Windows, base+letters(fileWindowsPath(path)))
		t.add(Windows, base+letters(fileWindowsPath(windowsPath(path, strings.Clone))))
	}
}

// fileDots is [encodedDots] with a drive, which a .. behind it cannot leave if it comes first.
func fileDots(segment string) int {
	if len(segment) == 2 && isAlpha(segment[0]) && (segment[1] == ':' || segment[1] == '|') {
		return rootDots
	}
	return encodedDots(segment)
}

// withDrive returns path with the bar of a drive as a colon, as browsers read it.
func withDrive(path string) string {
	if len(path) >= 3 && isAlpha(path[1]) && path[2] == '|' && (len(path) == 3 || path[3] == '/') {
		return path[:2] + ":" + path[3:]
	}
	return path
}

// fileHosts returns the host of a file URL in all readings. localhost counts as no host, and
// to some programs so does 127.0.0.1.
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

// fileWindowsPath is [windowsPath] of a URL's path, where a slash stands before a drive.
func fileWindowsPath(path string) string {
	if drive := strings.TrimLeft(slashed(path), "/"); isDrive(drive) {
		return "/" + windowsPath(drive, windowsSegment)
	}
	return windowsPath(path, windowsSegment)
}
