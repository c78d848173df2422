package plug

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"writ.example/writ/internal/toolcall"
	writ "writ.example/writ/sdk/go"
)

// Mapping says what calls of tools are, where writ cannot know it:
//
//	tools:
//	  mcp__crm__book:
//	    action: booking.create
//	    resources: [$.hotel.url]
//	    cost: {amount_minor: $.price_cents, currency: EUR}
//	sources:
//	  contacts: [people.*.email]
//
// A text that begins with "$." names an argument, or a member of one. Among the resources it may name a list
// of texts, too. A call that lacks it is not decided, so it does not run.
type Mapping struct {
	Tools   map[string]mapped
	Sources *Sources // nil if sources are not stated
}

type mapped struct {
	Action    string   `yaml:"action"`
	Resources []string `yaml:"resources"`
	Cost      *struct {
		AmountMinor string `yaml:"amount_minor"`
		Currency    string `yaml:"currency"`
	} `yaml:"cost"`
}

func readMapping(name string) (m Mapping, err error) {
	if name == "" {
		return m, nil
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return m, fmt.Errorf("--mapping: %w", err)
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	var file struct {
		Tools   map[string]mapped `yaml:"tools"`
		Sources yaml.Node         `yaml:"sources"`
	}
	err = dec.Decode(&file)
	if err == nil && file.Sources.Kind != 0 {
		m.Sources, err = readSources(&file.Sources)
	}
	if err != nil {
		return m, fmt.Errorf("--mapping: %s: %w", name, err)
	}
	m.Tools = file.Tools
	return m, nil
}

// Intents returns the intents of a call, one for each resource. What they have in common is in. The first
// intent has the cost, and in's id if there is one, from which the ids of the others follow.
func (m Mapping) Intents(call toolcall.Call, in writ.Intent) ([]writ.Intent, error) {
	var err error
	to := m.Tools[call.Tool]
	in.ActionType = call.ActionType()
	if to.Action != "" {
		if in.ActionType, err = text(call, to.Action); err != nil {
			return nil, err
		}
	}
	if in.Metadata, err = call.Facts(); err != nil {
		return nil, err
	}
	var resources []string
	for _, of := range to.Resources {
		more, err := texts(call, of)
		if err != nil {
			return nil, err
		}
		resources = append(resources, more...)
	}
	if len(to.Resources) == 0 {
		if resources, err = call.Resources(); err != nil {
			return nil, err
		}
	}
	if len(resources) > maxResources {
		return nil, fmt.Errorf("the call has %d resources: at most %d are decided as one", len(resources), maxResources)
	}
	intents := make([]writ.Intent, len(resources))
	for i, resource := range resources {
		intents[i] = in
		intents[i].Resource = resource
		if in.IntentID != "" {
			intents[i].IntentID = toolcall.Following(in.IntentID, i)
		}
	}
	if to.Cost != nil {
		intents[0].Cost, err = to.cost(call)
	}
	return intents, err
}

// maxResources is how many intents a batch may have.
const maxResources = 100

func (to mapped) cost(call toolcall.Call) (*writ.Cost, error) {
	amount, err := value(call, to.Cost.AmountMinor)
	if err != nil {
		return nil, err
	}
	var c writ.Cost
	if err := json.Unmarshal(amount, &c.AmountMinor); err != nil {
		return nil, fmt.Errorf("--mapping: %s: want an integer", to.Cost.AmountMinor)
	}
	c.Currency, err = text(call, to.Cost.Currency)
	return &c, err
}

// texts returns the texts of the argument that a text of the mapping names, or the text itself.
func texts(call toolcall.Call, of string) ([]string, error) {
	if !strings.HasPrefix(of, "$.") {
		return []string{of}, nil
	}
	v, err := value(call, of)
	if err != nil {
		return nil, err
	}
	var all []string
	if json.Unmarshal(v, &all) != nil {
		all = make([]string, 1)
		err = json.Unmarshal(v, &all[0])
	}
	if err != nil || len(all) == 0 || slices.Contains(all, "") {
		return nil, fmt.Errorf("--mapping: %s: want a text that is not empty, or a list of such texts", of)
	}
	return all, nil
}

// text returns the argument that a text of the mapping names, or the text itself.
func text(call toolcall.Call, of string) (s string, err error) {
	if !strings.HasPrefix(of, "$.") {
		return of, nil
	}
	v, err := value(call, of)
	if err != nil {
		return "", err
	}
	if err := json.Unmarshal(v, &s); err != nil || s == "" {
		return "", fmt.Errorf("--mapping: %s: want a text that is not empty", of)
	}
	return s, nil
}

// value returns the argument that a text of the mapping names, or the text as JSON.
func value(call toolcall.Call, of string) (json.RawMessage, error) {
	path, ok := strings.CutPrefix(of, "$.")
	if !ok {
		return json.RawMessage(of), nil
	}
	names := strings.Split(path, ".")
	v, ok := call.Args[names[0]]
	at := json.RawMessage(v)
	for _, name := range names[1:] {
		var inner map[string]json.RawMessage
		if json.Unmarshal(at, &inner) != nil {
			inner = nil
		}
		at, ok = inner[name]
	}
	if !ok || at == nil || string(at) == "null" {
		return nil, fmt.Errorf("--mapping: the call has no %s", of)
	}
	return at, nil
}
