package core

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/go-json-experiment/json"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
	"writ.example/writ/engine/resource"
)

// input is the input of a question. Its rules, if they are sent, are written beside it: see the
// package documentation.
type input struct {
	Policy            *engine.ActionPolicy `json:"policy"`
	Intent            *engine.Intent       `json:"intent"`
	DecidedAt         time.Time            `json:"decided_at"`
	Agent             agent                `json:"agent"`
	Readings          readings             `json:"readings"`
	Values            map[string]value     `json:"values,omitzero"`
	Organization      organization         `json:"organization"`
	Usage             usage                `json:"usage"`
	RequireRegistered bool                 `json:"require_registered_agents"`
	Approval          *approval            `json:"approval,omitzero"`
	Counters          map[string]*int64    `json:"counters,omitzero"` // null: not counted
	DerivedFrom       *derivedFrom         `json:"derived_from,omitzero"`
	RulesRevision     int64                `json:"rules_revision"`
	Semantics         int                  `json:"semantics"`
	Digest            string               `json:"digest"`
}

type agent struct {
	ID     string `json:"id"`
	Status string `json:"status"`
	// Called has the agent's names as sent and registered, Names these and their folded forms.
	Called []string `json:"called"`
	Names  []string `json:"names"`
}

type approval struct {
	ID     string `json:"approval_id"`
	Status string `json:"status"`
}

type readings struct {
	Blocked []reading `json:"blocked"`
	Allowed []reading `json:"allowed"`
	Stops   string    `json:"stops"`
}

type reading struct {
	Text    string   `json:"text"`
	Readers []string `json:"readers"`
}

// value is what a metadata value is read as: see [condition.Value].
type value struct {
	Elements []element `json:"elements"`
	Sizes    []int64   `json:"sizes"`
	Address  []string  `json:"address"`
	Blocked  []string  `json:"blocked"`
}

type element struct {
	Text      string   `json:"text"`
	Addresses []string `json:"addresses"`
	Others    []string `json:"others"`
	Blocked   []string `json:"blocked"`
}

func valuesOf(metadata map[string]string) map[string]value {
	if metadata == nil {
		return nil
	}
	all := make(map[string]value, len(metadata))
	for key, text := range metadata {
		read := condition.ReadValue(text)
		v := value{Sizes: read.Sizes, Address: read.Address, Blocked: slices.Collect(read.Blocked)}
		for _, e := range read.Elements {
			v.Elements = append(v.Elements, element{e.Text, e.Addresses, e.Others, e.Blocked})
		}
		all[key] = v
	}
	return all
}

// derivedFrom has the members of the intent from which counters are derived: they do not show it.
type derivedFrom struct {
	Counters struct {
		ActionType string       `json:"action_type"`
		AgentID    string       `json:"agent_id"`
		Cost       *engine.Cost `json:"cost"`
	} `json:"counters"`
}

// organization is never stopped: a stopped one is denied without the core.
type organization struct {
	Stopped bool `json:"stopped"`
}

type usage struct {
	Exceeded bool `json:"exceeded"`
}

// The body of a question is openInput, the encoded input and closeInput. If the rules are sent, they
// are the first member: the body is then openInput, openRules, the rules, the encoded input after its
// opening brace, and closeInput.
const (
	openInput  = `{"input":`
	openRules  = `{"rules":`
	closeInput = `}`
)

// question is the question to a core. It shares the bytes of the rules with the set, because an
// organization can have thousands of rules, too many to copy for each intent.
type question struct {
	parts  [][]byte
	under  versions
	digest string
}

// versions name the policy and the rules under which a decision is made.
type versions struct{ policy, rules int64 }

func readingsFor(r *resource.Readings, side resource.Side) (all []reading) {
	for i := range r.Len(side) {
		read := r.At(side, i)
		all = append(all, reading{read.Text, read.Readers.Names()})
	}
	return all
}

// newQuestion encodes the question to the core. It sends the rules if withRules is true.
func newQuestion(set engine.Set, in *engine.Input, withRules bool) (question, error) {
	if set.Policy == nil || in == nil || in.Intent == nil {
		return question{}, errors.New("there is nothing to decide")
	}
	read, err := in.Intent.Readings()
	if err != nil {
		return question{}, fmt.Errorf("reading the resource: %w", err)
	}
	digest, err := engine.Digest(set.Policy.Document(), set.Rules)
	if err != nil {
		return question{}, err
	}
	names := in.ConditionNames()
	q := input{
		Policy:            set.Policy.Document(),
		Intent:            in.Intent,
		DecidedAt:         in.DecidedAt,
		Agent:             agent{in.Intent.AgentID, in.Agent.String(), names.Called(), names.Forms()},
		Organization:      organization{in.Stopped},
		Usage:             usage{in.Usage.Exceeded},
		RequireRegistered: in.RequireRegistered,
		RulesRevision:     set.Revisions.Rules,
		Semantics:         engine.Semantics,
		Values:            valuesOf(in.Intent.Metadata),
		Digest:            digest,
	}
	if a := in.Approval; a != nil {
		q.Approval = &approval{a.ID, a.Status}
	}
	if q.Counters = counters(in.Counts); q.Counters != nil {
		q.DerivedFrom = new(derivedFrom)
		from := &q.DerivedFrom.Counters
		from.ActionType, from.AgentID, from.Cost = in.Intent.ActionType, in.Intent.AgentID, in.Intent.Cost
	}
	q.Readings.Blocked, q.Readings.Allowed = readingsFor(&read, resource.ForBlock),
		readingsFor(&read, resource.ForAllow)
	q.Readings.Stops = read.Stops().String()
	rest, err := json.Marshal(&q)
	if err != nil {
		return question{}, fmt.Errorf("encoding the question: %w", err)
	}
	asked := question{under: versions{q.Policy.Version, q.RulesRevision}, digest: digest}
	asked.parts = [][]byte{[]byte(openInput), rest, []byte(closeInput)}
	if !withRules {
		return asked, nil
	}
	rules, err := set.Rules.JSON()
	if err != nil {
		return question{}, err
	}
	rest[0] = ','
	asked.parts = [][]byte{[]byte(openInput), []byte(openRules), rules, rest, []byte(closeInput)}
	return asked, nil
}

func (q question) len() (n int64) {
	for _, part := range q.parts {
		n += int64(len(part))
	}
	return n
}

// open returns a new reader of the whole body. Each reader starts at the beginning of the body.
func (q question) open() (io.ReadCloser, error) {
	readers := make([]io.Reader, len(q.parts))
	for i, part := range q.parts {
		readers[i] = bytes.NewReader(part)
	}
	return io.NopCloser(io.MultiReader(readers...)), nil
}

// counters returns the counts by the keys of their counters. It returns nil if there are no
// counters.
func counters(counts []condition.Count) map[string]*int64 {
	if len(counts) == 0 {
		return nil
	}
	all := make(map[string]*int64, len(counts))
	for _, c := range counts {
		all[c.Counter.Key] = nil
		if c.N != condition.Uncounted {
			all[c.Counter.Key] = &c.N
		}
	}
	return all
}
