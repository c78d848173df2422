package console

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
)

// policyDoc is a version of a policy as it is stored. Members that are not listed here are shown as they are.
type policyDoc map[string]any

// Str returns a member as text.
func (p policyDoc) Str(name string) string { return shown(p[name]) }

// shown writes a value of JSON as text: a text as it is, and anything else as JSON.
func shown(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(data)
}

func (v *visit) policies() error {
	return v.listed("policies", "Policies", new(list[policyDoc]), under("policies"))
}

// line is an entry of a member, in one version or in both.
type line struct {
	Text string
	In   string // "", "del" or "ins"
}

// member is a member of two versions.
type member struct {
	Name    string
	Lines   []line
	Changed bool
}

func (v *visit) policy() error {
	id, q := v.r.PathValue("id"), v.r.URL.Query()
	versions, _, err := all[policyDoc](v, under("policies", id), url.Values{})
	if err != nil {
		return err
	}
	body := struct {
		ID               string
		Versions         []policyDoc
		Version, Against string
		Members          []member
		Changes          changesOf
	}{ID: id, Versions: versions, Version: q.Get("version"), Against: q.Get("against")}
	if body.Version == "" && len(versions) > 0 {
		body.Version = versions[0].Str("version")
	}
	find := func(n string) (policyDoc, error) {
		if n == "" {
			return nil, nil
		}
		i := slices.IndexFunc(versions, func(p policyDoc) bool { return p.Str("version") == n })
		if i < 0 {
			return nil, &problem{Status: 404, Code: "not_found", Detail: "The policy has no version " + quoted(n) + "."}
		}
		return versions[i], nil
	}
	to, err := find(body.Version)
	if err != nil {
		return err
	}
	from, err := find(body.Against)
	if err != nil {
		return err
	}
	body.Members = compare(from, to)
	if err := body.Changes.read(v, "policy", id); err != nil {
		return err
	}
	return v.show("policy", "Policy "+short(id), "Policies", body)
}

// compare returns the members of to, and how each differs from the same member of from. A nil from differs in
// nothing.
func compare(from, to policyDoc) []member {
	names := slices.Sorted(maps.Keys(to))
	if from != nil {
		for name := range from {
			if _, ok := to[name]; !ok {
				names = append(names, name)
			}
		}
		slices.Sort(names)
	}
	out := make([]member, 0, len(names))
	for _, name := range names {
		m := member{Name: name}
		is, was := entries(to[name]), entries(to[name])
		if from != nil {
			was = entries(from[name])
		}
		for _, s := range was {
			if !slices.Contains(is, s) {
				m.Lines, m.Changed = append(m.Lines, line{s, "del"}), true
			}
		}
		for _, s := range is {
			if slices.Contains(was, s) {
				m.Lines = append(m.Lines, line{s, ""})
			} else {
				m.Lines, m.Changed = append(m.Lines, line{s, "ins"}), true
			}
		}
		out = append(out, m)
	}
	return out
}

func entries(v any) []string {
	if v == nil {
		return nil
	}
	all, ok := v.([]any)
	if !ok {
		return []string{shown(v)}
	}
	out := make([]string, len(all))
	for i, e := range all {
		out[i] = shown(e)
	}
	return out
}
