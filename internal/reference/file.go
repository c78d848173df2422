package reference

import "slices"

// readFile returns the readings of a file: URL by browser, client, POSIX and Windows. Each reading
// keeps file://.
func readFile(t text) ([]reading, error) {
	rest := t[len("file:"):]
	host, path, err := fileParts(rest, false)
	if err != nil {
		return nil, err
	}
	before, query := cutQuery(path)
	if escapedControl(before) {
		return nil, errControl
	}
	slashHost, slashPath, err := fileParts(slashed(rest), true)
	if err != nil {
		return nil, err
	}
	if len(slashPath) > 2 && isASCIILetter(slashPath[1]) && slashPath[2] == '|' && (len(slashPath) == 3 || slashPath[3] == '/') {
		slashPath = concat(slashPath[:2], text(":"), slashPath[3:]) // WHATWG accepts | for the colon of a drive
	}
	slashBefore, slashQuery := cutQuery(slashPath)
	out := []reading{
		{by: Client, head: host, path: canon(resolveURL(before, literalDots)), query: canon(query)},
		{by: Browser, head: slashHost, path: canon(resolveURL(slashBefore, escapedDots)), query: canon(slashQuery)},
		{by: POSIX, head: host, path: letters(posix(path))},
		{by: POSIX, head: host, path: letters(posix(decodeOnce(before)))},
	}
	for _, p := range []text{slashBefore, decodeOnce(slashBefore)} {
		out = append(out, fileOnWindows(slashHost, p))
	}
	return out, nil
}

// fileParts cuts the text after file: into file://host and a path. WHATWG takes a drive in the
// place of the host for the beginning of the path.
func fileParts(rest text, browser bool) (head, path text, err error) {
	head = text("file://")
	if !hasPrefix(rest, "//") {
		return head, rootedPath(rest), nil
	}
	authority, path := cutAuthority(rest[2:])
	if browser && len(authority) == 2 && isASCIILetter(authority[0]) && (authority[1] == ':' || authority[1] == '|') {
		return head, concat(text{'/', authority[0], ':'}, path), nil
	}
	if endsWithDoubleStar(authority) && len(path) == 0 {
		return concat(head, authority), nil, nil
	}
	path = rootedPath(path)
	host := withoutUser(authority)
	if len(host) == 0 {
		return head, path, nil
	}
	web, err := parseWeb(concat(text("http://"), host, text("/")))
	if err != nil {
		return nil, nil, err
	}
	name := web.heads[len(web.heads)-1][len("http://"):]
	if show(name) == "localhost" {
		name = nil
	}
	return concat(head, name), path, nil
}

func rootedPath(path text) text {
	if hasPrefix(path, "/") {
		return path
	}
	return concat(text("/"), path)
}

// fileOnWindows returns the reading of the path on Windows: C:\…, or \\host\… if the URL has a
// host.
func fileOnWindows(head, path text) reading {
	host := head[len("file://"):]
	if len(host) > 0 {
		unc := windows(concat(text("//"), host, path))
		return reading{by: Windows, head: head, path: letters(unc[min(len(unc), 2+len(host)):])}
	}
	if len(path) > 1 && isDrive(concat(path[1:], text("/"))) {
		return reading{by: Windows, head: head, path: concat(text("/"), letters(windows(ensureRoot(path[1:]))))}
	}
	return reading{by: Windows, head: head, path: letters(windows(path))}
}

// ensureRoot adds a slash after a drive that has none.
func ensureRoot(t text) text {
	if len(t) == 2 {
		return concat(t, text("/"))
	}
	return t
}

// filePath returns the reading of the path that a file: URL names.
func filePath(r reading) (reading, bool) {
	if !hasPrefix(r.head, "file://") {
		return r, false
	}
	host := r.head[len("file://"):]
	path := slices.Clone(r.path)
	switch {
	case len(host) > 0:
		path = concat(text("//"), host, path)
	case r.by == Windows && len(path) > 1 && isDrive(concat(path[1:], text("/"))):
		path = path[1:]
	}
	return reading{by: r.by, path: path, query: r.query}, true
}
