package scrub

import (
	"regexp"
	"strings"

	"writ.example/writ/internal/apikey"
)

// ownRules are the rules that gitleaks lacks.
func ownRules() []*rule {
	return []*rule{
		{kind: KindCard, scan: cards, redacts: true, digits: 13}, // 13 to 19 (ISO/IEC 7812)
		email(),
		userinfo(),
		assignment(),
		mustRule("telegram-bot-api-token", `(?:^|[^0-9])([0-9]{5,16}:AA[\w-]{32,34})(?:$|[^\w-])`, ":aa"),
		mustRule("writ-api-key", apikey.Pattern, apikey.Prefix),
		basic(),
		mustRule("authorization-header", `(?i)\b(?:bearer|basic)[ +]+([\w.~+/=-]*[0-9][\w.~+/=-]{11,})`, "bearer",
			"basic"),
		// The rule of gitleaks requires a whole key, but half of a key is a secret too.
		mustRule("private-key", `(?i)-----BEGIN[ +A-Z0-9_-]{0,100}PRIVATE[ +]KEY(?:[ +]BLOCK)?-----[\s\S]*`,
			"-----begin"),
		// The rule of gitleaks requires two parts that begin with {" and allows at most
		// three parts.
		mustRule("jwt", `(?:\b|_)(ew[o0k][\w-]{16,}\.e[wy][\w-]{17,}\.[\w-]*|eyJ[\w-]{16,}\.[\w-]*(?:\.[\w-]{8,}){3})`,
			"ewo", "ew0", "ewk", "eyj"),
		structured(),
		option(),
		stated(),
	}
}

func assignment() *rule {
	r := mustRule(KindAssigned, assigned, followed(nameWords(), "=", "s=")...)
	r.harmless = isOrdinaryValue
	return r
}

// assigned matches the assignment of a value, which is no pattern or placeholder, to the name
// of a credential.
const assigned = `(?i)` + names + `=([^\s;&,"'=*$<{(\[][^\s;&,"']*)`

// names matches the names of credentials. Each contains one of nameWords.
const names = `(?:password|passwd|pwd|passphrase|secret|token|(?:api|access|private|secret|account|signing)[_-]?key|` +
	`sess(?:ion)?_?id|authorization|cookie|credentials?|signature)`

func nameWords() []string {
	return strings.Fields(`
	password passwd pwd passphrase secret token key sessionid session_id sessid sess_id
	authorization cookie credential signature`)
}

// followed returns each word of words, followed by each end of ends.
func followed(words []string, ends ...string) (all []string) {
	for _, word := range words {
		for _, end := range ends {
			all = append(all, word+end)
		}
	}
	return all
}

// structured returns the rule of values that JSON, YAML, headers and source code assign to a
// credential's name. Prose and conditions can look the same.
func structured() *rule {
	r := mustRule(KindAssigned, `(?i)`+names+
		`(?:\\?["']\s*[:=]\s*|:\s+|\s*=\s*\\?["'])\\?["']?(?:(?:bearer|basic)\s+)?([^\s"'\\,;{}\[\]<>*$]{5,})`,
		nameWords()...)
	r.contextual, r.redacts, r.harmless = true, true, isOrdinaryValue
	return r
}

// basic returns the rule of the user and password in an Authorization header, of any length.
// Only the colon in the decoded text distinguishes them from other base64.
func basic() *rule {
	plain := mustRule("authorization-header", `(?i)\bbasic[ +]+([\w+/-]{4,}={0,2})`, "basic")
	r := *plain
	r.scan = func(text string) (spans []span) {
		for _, sp := range plain.append(nil, text) {
			if credentials := base64Digits.all(strings.TrimRight(text[sp.start:sp.end],
				"=")); strings.Contains(credentials, ":") {
				spans = append(spans, sp)
			}
		}
		return spans
	}
	return &r
}

func option() *rule {
	r := mustRule(KindAssigned, `(?i)--[a-z_-]*`+names+`[ +]+["']?([^\s"'<>*$-][^\s"']{2,})`, "--")
	r.redacts, r.harmless = true, isOrdinaryValue
	return r
}

// stated returns the rule of sentences that say what a credential is: the password is hunter2.
// Sentences about credentials look the same, so documents with them are not refused.
func stated() *rule {
	r := mustRule(KindAssigned, `(?i)(?:password|passwd|pwd|passphrase|passcode|secret|token|`+
		`(?:api|access|private|secret|account|signing)[ _-]?key|credential)(?:s are| is| was)(?: now| still)?:? `+
		`(?:"([^"*${<\[][^"]{3,})"|'([^'*${<\[][^']{3,})'|([^\s"'<>*${}\[\]]{3,}[^\s"'<>*${}\[\].,;:)]))`,
		followed(strings.Fields("password passwd pwd passphrase passcode secret token key credential"),
			" is", " was", "s are")...)
	r.redacts = true
	r.harmless = func(text string, start, end int) bool {
		return isOrdinaryValue(text, start, end) || saysOf(text, start, end)
	}
	return r
}

func email() *rule {
	r := mustRule(KindEmail, `[\p{L}\p{N}_.%+'-]+@(?:[\p{L}\p{N}-]+\.)+\p{L}{2,}`, "@")
	r.harmless, r.possible, r.redacts = isNoPerson, hasDomain, true
	return r
}

// hasDomain reports whether text has an @ before a label and a dot. The @ before the digest of
// an image has no dot.
func hasDomain(text string) bool {
	for {
		_, after, ok := strings.Cut(text, "@")
		if !ok {
			return false
		}
		end := strings.IndexFunc(after, func(r rune) bool { return !isDashed(r) || r == '_' })
		if end > 0 && after[end] == '.' {
			return true
		}
		text = after
	}
}

// hasColonBeforeAt reports whether text has a colon somewhere before an @.
func hasColonBeforeAt(text string) bool {
	colon := strings.IndexByte(text, ':')
	return colon >= 0 && colon < strings.LastIndexByte(text, '@')
}

// userinfo returns the rule of user:password@host and of user/password@host in Oracle's
// connection strings.
func userinfo() *rule {
	plain := mustRule(KindUserinfo,
		`([^\s/@:"'<>()]+:[^\s/@"'<>]+)@|://(:[^\s/@"'<>]+)@|(?i:jdbc:[\w:]*:)(?://)?([^\s/@:]+/[^\s@]+)@`, "@")
	plain.possible = hasColonBeforeAt
	r := *plain
	r.scan = func(text string) []span { return onlyUserinfo(plain.append(nil, text), text) }
	return &r
}

// version matches the version in name:tag@version.
var version = regexp.MustCompile(
	`^@(?:(?:[~^]|[<>]=?)?v?[0-9]+(?:\.[0-9]+){0,2}(?:\.(?:[xX*]|Final|RELEASE|GA))?(?:[-+][\w.+~-]*)?|sha(?:256|384|512)(?::|%3[Aa])[0-9a-f*?]+|latest)(?:[/\s"'?,;)\]}]|$)|^@refs/(?:heads|tags|pull)/`,
)

// mailbox matches the schemes of mailboxes, whose @ follows no password.
var mailbox = regexp.MustCompile(`^(?i:mailto|sips?|xmpp|acct|im):[^:]*$`)

// onlyUserinfo drops spans that are mailboxes or coordinates, that have a version instead of a
// host after them, or that were replaced before.
func onlyUserinfo(spans []span, text string) []span {
	kept := spans[:0]
	for _, sp := range spans {
		if !mailbox.MatchString(text[sp.start:sp.end]) && !version.MatchString(text[sp.end:]) &&
			!isCoordinate(text, sp.start, sp.end) &&
			!strings.HasSuffix(text[:sp.end], redacted(KindUserinfo, "")) {
			kept = append(kept, sp)
		}
	}
	return kept
}
