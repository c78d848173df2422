package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"writ.example/writ/internal/toolcall"
	writ "writ.example/writ/sdk/go"
)

// authzen is the mapping that a server declares for a tool in x-authzen-mapping of its inputSchema, as COAZ-MCP
// (draft 1 of the AuthZEN working group) has it: which actions a call is, on which resources. The subject is not
// read: the agent is the gateway's. Action, resource and context become what they are for POST
// /access/v1/evaluation, so that one policy fits both.
//
// A text that begins with $ is an expression. Of CEL, paths are read: $params.name, $params.arguments.customer.id,
// and with .? a path that may be missing. There is no token here, so what a path finds in it is missing. Any other
// expression is a mistake, and so are mappings of another form: the tool's calls are refused.
type authzen struct {
	bad   error
	parts []evaluation // a call is allowed if each of them is
}

// evaluation is a template of a request.
type evaluation struct {
	Action struct {
		Name       any            `json:"name"`
		Properties map[string]any `json:"properties"`
	} `json:"action"`
	Resource struct {
		Type       any            `json:"type"`
		ID         any            `json:"id"`
		Properties map[string]any `json:"properties"`
	} `json:"resource"`
	Context map[string]any  `json:"context"`
	Subject json.RawMessage `json:"subject"`
}

// readAuthZEN reads a declared mapping, or returns nil if there is none.
func readAuthZEN(declared json.RawMessage) *authzen {
	if declared == nil {
		return nil
	}
	var of struct {
		One  *evaluation      `json:"evaluation"`
		Many *json.RawMessage `json:"evaluations"`
	}
	var members map[string]json.RawMessage
	err := errors.Join(json.Unmarshal(declared, &members), json.Unmarshal(declared, &of))
	switch {
	case err != nil:
		return &authzen{bad: err}
	case len(members) == 1 && of.One != nil:
		return &authzen{parts: []evaluation{*of.One}}
	case len(members) == 1 && of.Many != nil:
		parts, err := readParts(*of.Many)
		return &authzen{err, parts}
	}
	return &authzen{bad: errors.New("want one member, evaluation or evaluations")}
}

// readParts reads the entries of evaluations, over what they have in common.
func readParts(data json.RawMessage) (parts []evaluation, err error) {
	var list struct {
		Parts []map[string]json.RawMessage `json:"evaluations"`
	}
	if err := json.Unmarshal(data, &list); err != nil || len(list.Parts) == 0 {
		return nil, errors.Join(err, errors.New("want evaluations.evaluations, a list with an entry"))
	}
	var common map[string]json.RawMessage
	if err := json.Unmarshal(data, &common); err != nil {
		return nil, err
	}
	delete(common, "evaluations")
	for i, own := range list.Parts {
		if _, ok := own["subject"]; ok {
			return nil, fmt.Errorf("evaluations.evaluations[%d]: want no subject of its own", i)
		}
		whole := maps.Clone(common)
		maps.Copy(whole, own) // a member takes the place of the common one
		data, err := json.Marshal(whole)
		if err != nil {
			return nil, err
		}
		var e evaluation
		if err := json.Unmarshal(data, &e); err != nil {
			return nil, fmt.Errorf("evaluations.evaluations[%d]: %w", i, err)
		}
		parts = append(parts, e)
	}
	return parts, nil
}

// intents returns the intents of a call.
func (a *authzen) intents(call toolcall.Call) (intents []writ.Intent, err error) {
	if a.bad != nil {
		return nil, fmt.Errorf("x-authzen-mapping of the tool %s: %w", call.Tool, a.bad)
	}
	r := resolver{call: call}
	for _, e := range a.parts {
		in, err := e.intent(&r)
		if err != nil {
			return nil, fmt.Errorf("x-authzen-mapping of the tool %s: %w", call.Tool, err)
		}
		intents = append(intents, in)
	}
	return intents, nil
}

func (e evaluation) intent(r *resolver) (in writ.Intent, err error) {
	in.ActionType = r.text("action.name", e.Action.Name)
	kind, id := r.text("resource.type", e.Resource.Type), r.text("resource.id", e.Resource.ID)
	in.Resource = toolcall.EntityResource(kind, id)
	call := r.call
	call.Stated = maps.Clone(call.Stated)
	call.Stated["resource_type"] = kind
	for of, members := range map[string]map[string]any{
		"action.": e.Action.Properties, "resource.": e.Resource.Properties, "context.": e.Context,
	} {
		for _, name := range slices.Sorted(maps.Keys(members)) {
			v, there := r.value(of+name, members[name])
			if text, ok := v.(string); ok {
				call.Stated[of+name] = text
			} else if there {
				data, err := json.Marshal(v)
				if err != nil {
					return in, err
				}
				call.Stated[of+name] = string(data)
			}
		}
	}
	if r.err != nil {
		return in, r.err
	}
	in.Metadata, err = call.Facts()
	return in, err
}

// resolver resolves the values of a template for a call, and keeps the first mistake.
type resolver struct {
	call toolcall.Call
	root map[string]any // in which paths begin; nil until the first one
	err  error
}

// begin decodes the arguments of the call for the paths.
func (r *resolver) begin(field string) {
	args := make(map[string]any, len(r.call.Args))
	for name, v := range r.call.Args {
		dec := json.NewDecoder(bytes.NewReader(v))
		dec.UseNumber()
		var arg any
		if err := dec.Decode(&arg); err != nil {
			r.fail(field, "%v", err)
		}
		args[name] = arg
	}
	r.root = map[string]any{
		"params": map[string]any{"name": r.call.Tool, "arguments": args}, "token": map[string]any{},
	}
}

func (r *resolver) fail(field, format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(field+": "+format, args...)
	}
}

// text returns a value that must be a text, or a number.
func (r *resolver) text(field string, v any) string {
	v, _ = r.value(field, v)
	switch v := v.(type) {
	case string:
		if v != "" {
			return v
		}
	case json.Number:
		return v.String()
	}
	r.fail(field, "want a text")
	return ""
}

// value returns a value with its expressions resolved, and whether it is there.
func (r *resolver) value(field string, v any) (_ any, there bool) {
	switch v := v.(type) {
	case string:
		path, isPath := strings.CutPrefix(v, "$")
		if !isPath || strings.HasPrefix(path, "$") {
			return path, true // as it is, or with the escape taken off
		}
		return r.path(field, path)
	case []any:
		var all []any
		for _, inner := range v {
			if one, ok := r.value(field, inner); ok {
				all = append(all, one)
			}
		}
		return all, true
	case map[string]any:
		all := make(map[string]any)
		for name, inner := range v {
			if one, ok := r.value(field+"."+name, inner); ok {
				all[name] = one
			}
		}
		return all, true
	}
	return v, true
}

// path returns what a path finds in the call.
func (r *resolver) path(field, path string) (_ any, there bool) {
	names := strings.Split(path, ".")
	if r.root == nil {
		r.begin(field)
	}
	var at any = r.root
	for i, name := range names {
		name, optional := strings.CutPrefix(name, "?")
		if !member.MatchString(name) || optional && i == 0 {
			r.fail(field, "$%s is no path: want one such as $params.arguments.id", path)
			return nil, false
		}
		inner, _ := at.(map[string]any)
		v, ok := inner[name]
		switch {
		case !ok && optional:
			return nil, false
		case !ok || v == nil:
			r.fail(field, "the call has no $%s", path)
			return nil, false
		}
		at = v
	}
	return at, true
}

var member = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
