package plug

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"writ/internal/toolcall"
	writ "writ/sdk/go"
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

// Provenance returns one that knows these fields.
func (s *Sources) Provenance() *writ.Provenance { return &writ.Provenance{Records: *s} }

// StateSources states where the arguments of a call come from. If not all was seen, what stands nowhere is unknown.
func StateSources(p *writ.Provenance, partly bool, call *toolcall.Call) error {
	args := make(map[string]any, len(call.Args))
	for name, v := range call.Args {
		args[name] = v
	}
	facts, err := p.Facts(args)
	if err != nil {
		return err
	}
	if partly {
		for name, said := range facts {
			facts[name] = strings.ReplaceAll(said, string(writ.SourceModel), string(writ.SourceUnknown))
		}
	}
	call.Sources = facts
	return nil
}
