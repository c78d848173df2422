package scrub

import (
	"regexp"
	"strings"

	"github.com/zricethezav/gitleaks/v8/config"
)

// ownRules are the rules that gitleaks lacks.
func ownRules() []*rule {
	return []*rule{
		{kind: KindCard, scan: cards},
		email(),
		userinfo(),
		mustRule(KindAssigned, assigned, "password=", "passwd=", "pwd=", "passphrase=", "secret=", "token=", "key=",
			"sessionid=", "sessid=", "authorization=", "credential=", "credentials=", "signature="),
		mustRule("writ-api-key", `writ_[0-9A-Za-z]+_[0-9A-Za-z]{40,}`, "writ_"),
		mustRule("authorization-header", `(?i)\b(?:bearer|basic)[ +]+([\w.~+/=-]*[0-9][\w.~+/=-]{11,})`, "bearer", "basic"),
		// gitleaks wants the whole key; half of one is a secret too.
		mustRule("private-key", `(?i)-----BEGIN[ +A-Z0-9_-]{0,100}PRIVATE[ +]KEY(?:[ +]BLOCK)?-----[\s\S]*`, "-----begin"),
	}
}

// assigned matches name=value where the name is a credential's and the value is
// neither a pattern nor a placeholder.
const assigned = `(?i)(?:password|passwd|pwd|passphrase|secret|token|(?:api|access|private|secret|account|signing)[_-]?key|` +
	`sess(?:ion)?_?id|authorization|credentials?|signature)=([^\s;&,"'=*$<{(\[][^\s;&,"']*)`

// email returns the rule of e-mail addresses. The git of git@host:path is
// nobody's mailbox.
func email() *rule {
	r := mustRule(KindEmail, `[\p{L}\p{N}_.%+'-]+@(?:[\p{L}\p{N}-]+\.)+\p{L}{2,}`, "@")
	r.allowed = []*config.Allowlist{{Regexes: []*regexp.Regexp{regexp.MustCompile(`^git@`)}}}
	return r
}

// userinfo returns the rule of user:password@host, also in the spelling of
// Oracle's connection strings, user/password@host.
func userinfo() *rule {
	plain := mustRule(KindUserinfo, `([^\s/@:"'<>()]+:[^\s/@"'<>]+)@|(?i:jdbc:[\w:]*:)(?://)?([^\s/@:]+/[^\s@]+)@`, "@")
	r := *plain
	r.scan = func(text string) []span { return onlyUserinfo(plain.append(nil, text), text) }
	return &r
}

// version matches what follows the @ of name:tag@version.
var version = regexp.MustCompile(`^@(?:v?[0-9]+(?:\.[0-9]+){0,2}(?:[-+][\w.+-]*)?|sha256:[0-9a-f]+|latest)(?:[/\s]|$)`)

// mailbox matches the schemes whose address is a mailbox: its @ follows no
// password.
var mailbox = regexp.MustCompile(`^(?i:mailto|sips?|xmpp|acct|im):[^:]*$`)

// onlyUserinfo leaves out the spans that are a mailbox, those that are followed
// by a version rather than a host, and those that were replaced before.
func onlyUserinfo(spans []span, text string) []span {
	kept := spans[:0]
	for _, sp := range spans {
		if !mailbox.MatchString(text[sp.start:sp.end]) && !version.MatchString(text[sp.end:]) &&
			!strings.HasSuffix(text[:sp.end], redacted(KindUserinfo)) {
			kept = append(kept, sp)
		}
	}
	return kept
}
