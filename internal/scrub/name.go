package scrub

import (
	"slices"
	"strings"
	"unicode"
)

// namesCredential reports whether a key names a credential: password, githubToken, X-Api-Key,
// db.password_1. Keys such as token_count, secret_name and page_token do not.
func namesCredential(key string) bool {
	words := wordsOf(key)
	for len(words) > 1 && slices.Contains(forms, words[len(words)-1]) {
		words = words[:len(words)-1]
	}
	if len(words) == 0 {
		return false
	}
	if namesPageToken(words) {
		return false
	}
	last := words[len(words)-1]
	if last == "key" && len(words) > 1 {
		return slices.Contains(keys, words[len(words)-2])
	}
	return slices.Contains(credentials, last)
}

var (
	credentials = strings.Fields(`
	password passwd pwd passphrase passcode secret secrets token apikey accesskey privatekey
	secretkey authorization cookie cookies credential credentials jwt bearer sessionid cvv cvc
	pin otp`)
	keys  = strings.Fields(`api access private secret signing encryption ssh account auth`)
	forms = []string{"value", "hash", "header", "plain", "plaintext", "text", "raw", "b64", "base64", "encoded", ""}
)

// wordsOf splits a name where its case or its punctuation does, in lower case
// and without digits.
func wordsOf(name string) []string {
	var b strings.Builder
	var last rune
	for _, r := range name {
		switch {
		case !unicode.IsLetter(r):
			r = ' '
		case unicode.IsUpper(r) && unicode.IsLower(last):
			b.WriteByte(' ')
		}
		b.WriteRune(unicode.ToLower(r))
		last = r
	}
	return strings.Fields(b.String())
}
