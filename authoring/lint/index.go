package lint

import (
	"slices"

	"writ/engine/condition"
)

// index finds the rules that can match all intents of a case.
type index struct {
	// always are those that are asked of every case, values those that match nothing but
	// certain values of a field, and starts those whose patterns of a field start so.
	always []*active
	values filed
	starts filed
}

// filed are rules by a field and a text.
type filed map[key][]*active

type key struct {
	field condition.Field
	text  string
}

func (f *filed) add(field condition.Field, texts []string, a *active) {
	if *f == nil {
		*f = make(filed)
	}
	for _, text := range texts {
		k := key{field, text}
		if known := (*f)[k]; len(known) == 0 || known[len(known)-1] != a {
			(*f)[k] = append(known, a)
		}
	}
}

// add files a rule under what it asks for.
func (x *index) add(a *active) {
	if f, values := common(a.cases, (*condition.Case).Values); values != nil {
		x.values.add(f, values, a)
		return
	}
	if f, starts := common(a.cases, (*condition.Case).Starts); starts != nil {
		x.starts.add(f, starts, a)
		return
	}
	x.always = append(x.always, a)
}

// common returns a field of which every case says something, and all that they say.
func common(cases []*condition.Case, says func(*condition.Case, condition.Field) []string) (condition.Field, []string) {
	if len(cases) == 0 {
		return condition.Field{}, nil
	}
	for f := range cases[0].Fields {
		var all []string
		for _, c := range cases {
			said := says(c, f)
			if said == nil {
				all = nil
				break
			}
			all = append(all, said...)
		}
		if all != nil {
			return f, all
		}
	}
	return condition.Field{}, nil
}

// candidates yields the rules that may match all intents of c, some of them twice,
// until yield returns true.
func (x *index) candidates(c *condition.Case, yield func(a *active) (done bool)) {
	if slices.ContainsFunc(x.always, yield) {
		return
	}
	for f := range c.Fields {
		if values := c.Values(f); values != nil && slices.ContainsFunc(x.values[key{f, values[0]}], yield) {
			return
		}
		done := false
		c.Covered(f, func(text string) bool {
			for n := range len(text) + 1 {
				if done = slices.ContainsFunc(x.starts[key{f, text[:n]}], yield); done {
					return false
				}
			}
			return true
		})
		if done {
			return
		}
	}
}
