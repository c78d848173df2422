package plug

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"writ.example/writ/internal/toolcall"
	writ "writ.example/writ/sdk/go"
)

// Sources has by tool the fields of its results that are ours: see [writ.Provenance].
type Sources map[string][]string

// readSources refuses sources without a value: they would seem to be stated.
func readSources(n *yaml.Node) (*Sources, error) {
	if n.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("line %d: sources: want the fields of tools, or {}", n.Line)
	}
	s := make(Sources)
	return &s, n.Decode(&s)
}

// Provenance returns one that knows these fields. A nil s has none.
func (s *Sources) Provenance() *writ.Provenance {
	if s == nil {
		return new(writ.Provenance)
	}
	return &writ.Provenance{Records: *s}
}

// StateSources states where the arguments of a call come from. Those of the lost sources are unknown.
func StateSources(p *writ.Provenance, call *toolcall.Call, lost ...writ.Source) error {
	args := make(map[string]any, len(call.Args))
	for name, v := range call.Args {
		args[name] = v
	}
	facts, err := p.Facts(args)
	if err != nil {
		return err
	}
	call.Sources = make(map[string]map[string]string, len(facts))
	for fact, said := range facts {
		sources := strings.Split(said, ",")
		for i, source := range sources {
			if slices.Contains(lost, writ.Source(source)) {
				sources[i] = string(writ.SourceUnknown)
			}
		}
		name := strings.TrimPrefix(fact, writ.SourceFact)
		call.Sources[name] = map[string]string{fact: strings.Join(sources, ",")}
	}
	return nil
}

// Place returns the resource of a call that is about one, if an argument names it. The result of such a call is
// from there. A shell's output is from anywhere.
func Place(call toolcall.Call, intents []writ.Intent) string {
	if len(intents) != 1 || call.ActionType() == toolcall.ShellExec {
		return ""
	}
	place := intents[0].Resource
	if files, err := call.Files(); err == nil && slices.Contains(files, place) {
		return place
	}
	if slices.Contains(slices.Collect(maps.Values(call.Texts())), place) {
		return place
	}
	return ""
}
