package hook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"go.yaml.in/yaml/v3"

	"writ/internal/toolcall"
	writ "writ/sdk/go"
)

// mapping says what calls of tools are, where writ cannot know it:
//
//	tools:
//	  mcp__crm__book:
//	    action: booking.create
//	    resources: [$.hotel.url]
//	    cost: {amount_minor: $.price_cents, currency: EUR}
//
// A text that begins with "$." names an argument, or a member of one. A call that lacks it is not
// decided, so it does not run.
type mapping struct {
	Tools map[string]mapped `yaml:"tools"`
}

type mapped struct {
	Action    string   `yaml:"action"`
	Resources []string `yaml:"resources"`
	Cost      *struct {
		AmountMinor string `yaml:"amount_minor"`
		Currency    string `yaml:"currency"`
	} `yaml:"cost"`
}

func readMapping(name string) (m mapping, err error) {
	if name == "" {
		return m, nil
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return m, fmt.Errorf("--mapping: %w", err)
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	if err := dec.Decode(&m); err != nil {
		return m, fmt.Errorf("--mapping: %s: %w", name, err)
	}
	for tool, to := range m.Tools {
		if len(to.Resources) > 1 {
			return m, fmt.Errorf("--mapping: %s: tools.%s.resources: a hook decides about one resource", name, tool)
		}
	}
	return m, nil
}

// apply changes the intent of a call as the mapping says.
func (m mapping) apply(call toolcall.Call, in *writ.Intent) (err error) {
	to, ok := m.Tools[call.Tool]
	if !ok {
		return nil
	}
	if to.Action != "" {
		if in.ActionType, err = text(call, to.Action); err != nil {
			return err
		}
	}
	if len(to.Resources) > 0 {
		if in.Resource, err = text(call, to.Resources[0]); err != nil {
			return err
		}
	}
	if to.Cost == nil {
		return nil
	}
	amount, err := value(call, to.Cost.AmountMinor)
	if err != nil {
		return err
	}
	in.Cost = &writ.Cost{}
	if err := json.Unmarshal(amount, &in.Cost.AmountMinor); err != nil {
		return fmt.Errorf("--mapping: %s: want an integer", to.Cost.AmountMinor)
	}
	in.Cost.Currency, err = text(call, to.Cost.Currency)
	return err
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
