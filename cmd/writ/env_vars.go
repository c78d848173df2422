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

// A name counts as a misspelt variable at an edit distance of at most typoEdits. For a variable of
// shortName letters or fewer behind the prefix it is one: two edits make nearly every other short
// name of it, such as BIN and ENV of RUN.
const (
	typoEdits = 2
	shortName = 3
)

// injected matches variables that Kubernetes and Docker's links set in every container. They
// set them for a service whose name is writ or begins with writ-.
var injected = regexp.MustCompile(`^WRIT(_[A-Z0-9_]+)?_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|` +
	`PORT(_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR|START|END))?)?|NAME|ENV_[A-Za-z0-9_]+)$`)

// unread is the sorted list of the WRIT_… variables that no flag reads.
type unread []string

// unreadVariables returns the names in environ that begin like writ's variables but that no
// flag reads. The entries of environ have the form name=value. If a name is nearly a variable
// of the selected verb, that is an error, because a setting that is silently ignored can allow
// an action that should be refused.
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

// variables returns the variables for the flags of a node and of the verbs below it.
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

// nearest returns the variable that name misspells. It returns "" if no variable is near.
func nearest(name string, names []string) string {
	best, at := "", typoEdits+1
	for _, n := range names {
		d := levenshtein.ComputeDistance(name, n)
		if len(n)-len(envPrefix) <= shortName && d > 1 {
			continue
		}
		if d < at {
			best, at = n, d
		}
	}
	return best
}
