package scrub

import (
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// gitleaksRules is the rule file that gitleaks/fetch.sh fetches.
//
//go:embed gitleaks/gitleaks.toml
var gitleaksRules []byte

// operator is the common part of gitleaks' expressions that require a name before the
// secret.
const operator = `(?:=|>|:{1,3}=|\|\||:|=>|\?=|,)`

// before is the part of such an expression that matches text in front of the name. It
// takes most of the time and finds no further secret. Only the allowlists of the rule
// generic read the text that it matches.
const before = `[\w.-]{0,50}?`

// generic is the rule for any value assigned to a name like api_key. It is the only rule that
// much ordinary text passes, so it is the only one that needs the allowlists that gitleaks
// made from source code.
const generic = "generic-api-key"

// loadRules returns this package's own rules and the rules of gitleaks. It leaves out the
// rules that are only for files of a certain name.
func loadRules() ([]*rule, error) {
	var doc struct{ Rules []gitleaksRule }
	if err := toml.Unmarshal(gitleaksRules, &doc); err != nil {
		return nil, fmt.Errorf("reading the detector's rules: %w", err)
	}
	var rules []*rule
	for _, r := range doc.Rules {
		if r.Regex == "" || r.Path != "" {
			continue
		}
		expression := boundaries.Replace(r.Regex)
		if r.ID != generic {
			expression = strings.Replace(expression, before, "", 1)
		}
		own, err := newRule(r.ID, expression, lower(r.Keywords)...)
		if err != nil {
			return nil, err
		}
		own.group = r.SecretGroup
		if strings.Contains(r.Regex, operator) {
			own.entropy = r.Entropy
		}
		if r.ID == generic {
			own.contextual, own.harmless = true, isOrdinaryValue
			if own.allowed, err = r.allowlists(); err != nil {
				return nil, err
			}
		}
		if r.ID == "sourcegraph-access-token" {
			own.harmless = commit
		}
		rules = append(rules, own)
	}
	return slices.Concat(rules, ownRules(), urlRules()), nil
}

// gitleaksRule has the fields of gitleaks' rules that this package uses.
type gitleaksRule struct {
	ID          string
	Path        string
	Regex       string
	SecretGroup int
	Entropy     float64
	Keywords    []string
	Allowlists  []struct {
		Paths       []string
		RegexTarget string
		Regexes     []string
		StopWords   []string
	}
}

func (r *gitleaksRule) allowlists() (lists []allowlist, err error) {
	for _, a := range r.Allowlists {
		if len(a.Paths) > 0 {
			continue
		}
		list := allowlist{target: a.RegexTarget, stop: make(map[string][]string)}
		for _, e := range a.Regexes {
			re, err := regexp.Compile(e)
			if err != nil {
				return nil, fmt.Errorf("the rule %s: %w", r.ID, err)
			}
			list.expressions = append(list.expressions, re)
		}
		for _, word := range lower(a.StopWords) {
			if len(word) < stopPrefix {
				return nil, fmt.Errorf("the rule %s: the stop word %q is too short", r.ID, word)
			}
			list.stop[word[:stopPrefix]] = append(list.stop[word[:stopPrefix]], word)
		}
		lists = append(lists, list)
	}
	return lists, nil
}

func lower(keywords []string) []string {
	all := make([]string, len(keywords))
	for i, k := range keywords {
		all[i] = strings.ToLower(k)
	}
	return all
}

// boundaries widens where a secret may begin and end. Gitleaks expects source code, where
// quotes and white space surround a secret. In a resource or an agent's name slashes,
// underscores and dashes do.
var boundaries = strings.NewReplacer(
	`(?:[\x60'"\s;]|\\[nr]|$)`, `(?:[^a-zA-Z0-9]|$)`,
	`(?:^|[\\'"\x60\s>=:(,)])`, `(?:^|[^a-zA-Z0-9_~.])`,
	`(?:$|[\\'"\x60\s<),])`, `(?:$|[^a-zA-Z0-9_~.-])`,
	`\b`, `(?:\b|_)`,
)
