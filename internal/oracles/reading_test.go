package oracles

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/mail"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// reading is one program's reading of a resource. Without a URL, scheme and host are empty. A
// path on Windows has the scheme "windows". For an address, path is the text after mailto:,
// sms: or tel:.
type reading struct{ reader, scheme, host, port, path string }

// UnmarshalJSON reads the array [reader, scheme, host, port, path].
func (r *reading) UnmarshalJSON(data []byte) error {
	var all [5]string
	if err := json.Unmarshal(data, &all); err != nil {
		return err
	}
	*r = reading{all[0], all[1], all[2], all[3], all[4]}
	return nil
}

// defaultPorts are the ports that resources.md drops, by scheme.
var defaultPorts = map[string]string{
	"http": "80", "ws": "80", "https": "443", "wss": "443", "ftp": "21", "ssh": "22", "sftp": "22",
	"postgres": "5432", "postgresql": "5432", "mysql": "3306", "mongodb": "27017", "redis": "6379", "git": "9418",
}

// target returns the reading as a text. Two readings of the same place give the same text: it
// has no default port, no trailing dot of the host, and no trailing slash.
func (r reading) target() string {
	p := r.path
	if !isAddress(r.scheme + ":") {
		p = strings.TrimRight(p, "/")
	}
	if r.scheme == "" {
		return p
	}
	host := strings.ToLower(strings.TrimSuffix(r.host, "."))
	if host == "" && !strings.HasPrefix(p, "/") {
		return r.scheme + ":" + p
	}
	if strings.Contains(host, ":") && !strings.HasPrefix(host, "[") {
		host = "[" + host + "]"
	}
	last := r.scheme[strings.LastIndexAny(r.scheme, ":+")+1:]
	port := r.port
	if n, err := strconv.Atoi(port); err == nil {
		port = strconv.Itoa(n)
	}
	if port != "" && port != defaultPorts[last] {
		host += ":" + port
	}
	return r.scheme + "://" + host + p
}

// decoded matches the readers that return a decoded path.
var decoded = regexp.MustCompile("unquote|nfkc|url2pathname|fileURLToPath")

// targets returns the targets of all readings, each with the name of its reader. It adds the
// targets of the paths as Go's own server reads the paths.
func targets(all []reading) map[string]string {
	out := make(map[string]string, 2*len(all))
	add := func(r reading, by string) {
		if _, ok := out[r.target()]; !ok {
			out[r.target()] = by
		}
	}
	for _, r := range all {
		add(r, r.reader)
		if r.scheme == "windows" || isAddress(r.scheme+":") || decoded.MatchString(r.reader) {
			continue
		}
		if p, err := url.PathUnescape(r.path); err == nil && strings.HasPrefix(p, "/") {
			r.path = path.Clean(p)
			add(r, r.reader+">path.Clean")
		}
	}
	return out
}

// goReadings returns the readings of Go's own libraries.
func goReadings(text string) []reading {
	var out []reading
	if u, err := url.Parse(text); err == nil && u.Scheme != "" && u.Host != "" {
		out = append(out,
			reading{"go url.Parse", u.Scheme, u.Hostname(), u.Port(), u.EscapedPath()},
			reading{"go JoinPath", u.Scheme, u.Hostname(), u.Port(), u.JoinPath().EscapedPath()})
		if joined := u.ResolveReference(&url.URL{Path: u.Path, RawPath: u.RawPath}); joined != nil {
			out = append(out, reading{"go ResolveReference", u.Scheme, u.Hostname(), u.Port(), joined.EscapedPath()})
		}
	}
	if r, err := http.NewRequest(http.MethodGet, text, nil); err == nil && r.URL.Scheme != "" && r.URL.Host != "" {
		sent, _, _ := strings.Cut(r.URL.RequestURI(), "?")
		out = append(out, reading{"go http.NewRequest", r.URL.Scheme, r.URL.Hostname(), r.URL.Port(), sent})
	}
	if strings.Contains(text, "://") {
		return out
	}
	if !isAddress(text) {
		out = append(out, reading{"go path.Clean", "", "", "", path.Clean(text)})
	}
	return append(out, goAddresses(text)...)
}

// isAddress reports whether text is a URL of an address. Such a URL has no path.
func isAddress(text string) bool {
	scheme, _, ok := strings.Cut(strings.ToLower(text), ":")
	return ok && slices.Contains([]string{"mailto", "sms", "tel"}, scheme)
}

func goAddresses(text string) []reading {
	if u, err := url.Parse(text); err == nil && u.Scheme == "mailto" {
		lists := []string{u.Opaque}
		for key, values := range u.Query() {
			if slices.Contains([]string{"to", "cc", "bcc"}, strings.ToLower(key)) {
				lists = append(lists, values...)
			}
		}
		text = strings.Join(lists, ",")
	}
	text, err := url.PathUnescape(text)
	if err != nil || !strings.Contains(text, "@") {
		return nil
	}
	list, err := mail.ParseAddressList(text)
	if err != nil {
		return nil
	}
	var out []reading
	for _, a := range list {
		out = append(out, reading{"go mail.ParseAddressList", "mailto", "", "", strings.ToLower(a.Address)})
	}
	return out
}

func (r reading) String() string { return fmt.Sprintf("%s reads %s", r.reader, r.target()) }
