package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
	"github.com/alecthomas/kong"
)

const envPrefix = "WRIT_"

// typoEdits is how many letters away from a variable a name counts as a slip.
const typoEdits = 2

// injected matches what Kubernetes and Docker's links set in every container
// beside a service whose name is writ or begins with writ-.
var injected = regexp.MustCompile(`^WRIT(_[A-Z0-9_]+)?_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|` +
	`PORT(_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR|START|END))?)?|NAME|ENV_[A-Za-z0-9_]+)$`)

// unread are the names of WRIT_… variables that no flag reads, sorted.
type unread []string

// unreadVariables returns the names in environ, whose entries are name=value, that begin
// like writ's variables and that no flag reads. A name that is nearly a variable of the
// selected verb is an error: a setting that is silently ignored can allow what it should
// refuse.
func unreadVariables(environ []string, k *kong.Context) (unread, error) {
	known := make(map[string]bool)
	for _, name := range variables(k.Model.Node) {
		known[name] = true
	}
	read := variables(k.Selected())
	var strange unread
	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, envPrefix) || known[name] || injected.MatchString(name) {
			continue
		}
		if meant := nearest(name, read); meant != "" {
			return nil, &usageError{fmt.Sprintf("there is no variable %s: did you mean %s?", name, meant)}
		}
		strange = append(strange, name)
	}
	slices.Sort(strange)
	return strange, nil
}

// variables returns the variables of the flags of a node and of the verbs below.
func variables(n *kong.Node) []string {
	var all []string
	for _, f := range n.Flags {
		all = append(all, f.Envs...)
	}
	for _, child := range n.Children {
		all = append(all, variables(child)...)
	}
	return all
}

// nearest returns the variable that name is a slip of, or "".
func nearest(name string, names []string) string {
	best, at := "", typoEdits+1
	for _, n := range names {
		if d := levenshtein.ComputeDistance(name, n); d < at {
			best, at = n, d
		}
	}
	return best
}
