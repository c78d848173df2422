package rego

import (
	"regexp"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// NameOf returns a name as the part of a Rego name: in lower case, and each run of other characters
// than letters, digits and underscores of ASCII as one underscore.
func NameOf(s string) string { return notNames.ReplaceAllString(strings.ToLower(s), "_") }

var notNames = regexp.MustCompile(`[^a-z0-9_]+|__+`)

// PackageOf returns the package of a module, such as "team.payments". It reports false if source
// is no module: it is the body of a rule, or it has a syntax error.
func PackageOf(source string) (name string, ok bool) {
	if !packageClause.MatchString(source) {
		return "", false
	}
	m, err := ast.ParseModuleWithOpts("", source, parserOptions())
	if err != nil || m == nil {
		return "", false
	}
	return strings.TrimPrefix(m.Package.Path.String(), ast.DefaultRootDocument.String()+"."), true
}
