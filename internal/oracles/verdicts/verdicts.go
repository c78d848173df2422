// Package verdicts has policies with resources that they pass and resources that they do not
// pass. It is for the tests of every implementation that decides about resources.
//
// A case is a reason, patterns that allow and block, and resources:
//
//	customers by mail
//	allow mailto:*@customers.example
//	# why the next line is there
//	+ mailto:ann@customers.example      passes
//	- mailto:mallory@evil.example       does not
//	! "mailto:ann@customers.example "   is refused, whatever the patterns are
//
// If a resource stands in quotes right behind its sign, it is quoted as in Go.
package verdicts

import (
	"embed"
	"strconv"
	"strings"
	"testing"
)

//go:embed triples.txt spellings.txt
var files embed.FS

// Case is a policy with its verdicts. If Allow is empty, everything is allowed.
type Case struct {
	Why                    string
	Allow, Block           []string
	Passes, Not, IsRefused []string
}

// Run runs f for each case.
func Run(t *testing.T, f func(t *testing.T, c Case)) {
	t.Helper()
	for _, name := range []string{"triples.txt", "spellings.txt"} {
		text, err := files.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for block := range strings.SplitSeq(strings.TrimSpace(string(text)), "\n\n") {
			if strings.HasPrefix(block, "# ") {
				continue
			}
			c := parse(t, block)
			if len(c.Passes)+len(c.Not)+len(c.IsRefused) == 0 {
				t.Fatalf("%s: %q has no resource", name, c.Why)
			}
			t.Run(c.Why, func(t *testing.T) { f(t, c) })
		}
	}
}

func parse(t *testing.T, block string) (c Case) {
	t.Helper()
	lines := strings.Split(block, "\n")
	c.Why = lines[0]
	lists := map[string]*[]string{"allow": &c.Allow, "block": &c.Block, "+": &c.Passes, "-": &c.Not, "!": &c.IsRefused}
	for _, line := range lines[1:] {
		if strings.HasPrefix(line, "# ") {
			continue
		}
		verb, text, _ := strings.Cut(line, " ")
		if quoted := line[1:]; strings.HasPrefix(quoted, `"`) {
			var err error
			if text, err = strconv.Unquote(quoted); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			verb = line[:1]
		}
		list := lists[verb]
		if list == nil {
			t.Fatalf("%q is no allow, block, +, - or !", line)
		}
		*list = append(*list, text)
	}
	return c
}
