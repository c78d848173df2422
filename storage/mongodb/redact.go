package mongodb

import (
	"net/url"
	"strings"
)

// redacted is an error whose text has no credentials. It has no Unwrap, because the original error
// has credentials.
type redacted string

func (e redacted) Error() string { return string(e) }

// redact returns err without the URI's credentials in its text, escaped or unescaped. If the text
// has no credentials, redact returns err unchanged.
func redact(err error, uri string) error {
	text := err.Error()
	for _, secret := range secrets(uri) {
		text = strings.ReplaceAll(text, secret, "[redacted]")
	}
	if text == err.Error() {
		return err
	}
	return redacted(text)
}

// secrets returns the credentials of a URI, which may be malformed. Credentials are the text before
// the last @, the password in this text, and the values of options that may have passwords or
// tokens. Each is returned twice, as written and unescaped.
func secrets(uri string) (found []string) {
	_, rest, _ := strings.Cut(uri, "://")
	add := func(s string) {
		if s == "" {
			return
		}
		found = append(found, s)
		if plain, err := url.PathUnescape(s); err == nil && plain != s && plain != "" {
			found = append(found, plain)
		}
	}
	if end := strings.LastIndexByte(rest, '@'); end >= 0 {
		user := rest[:end]
		add(user)
		if _, password, ok := strings.Cut(user, ":"); ok {
			add(password)
		}
		_, password := userIn(uri)
		add(password)
	}
	_, query, _ := strings.Cut(rest, "?")
	for option := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(option, "=")
		name = strings.ToLower(name)
		if strings.Contains(name, "password") || strings.Contains(name, "properties") {
			add(value)
		}
	}
	return found
}

// userIn returns the user and the password in a URI, as they are written. They may have characters that must
// be escaped.
func userIn(uri string) (user, password string) {
	_, rest, _ := strings.Cut(uri, "://")
	if i := strings.LastIndexByte(rest, '?'); i >= 0 && strings.Contains(rest[:i], "@") {
		rest = rest[:i] // the query
	}
	end := strings.LastIndexByte(rest, '@')
	if end < 0 {
		return "", ""
	}
	user, password, _ = strings.Cut(rest[:end], ":")
	return user, password
}
