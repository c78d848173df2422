package rego

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
	"writ.example/writ/engine/resource"
)

// The names of the input's members. All documents share these terms, and nothing modifies them.
var (
	keyIntent, keyAgent, keyPolicy, keyUsage = ast.StringTerm("intent"), ast.StringTerm("agent"),
		ast.StringTerm("policy"), ast.StringTerm("usage")
	keyReadings, keyBlocked, keyAllowed = ast.StringTerm("readings"), ast.StringTerm("blocked"),
		ast.StringTerm("allowed")
	keyText, keyReaders, keyStops     = ast.StringTerm("text"), ast.StringTerm("readers"), ast.StringTerm("stops")
	keyRequireRegistered, keyExceeded = ast.StringTerm("require_registered_agents"), ast.StringTerm("exceeded")
	keyPolicyID, keyAgentID           = ast.StringTerm("policy_id"), ast.StringTerm("agent_id")
	keyCost, keyAmount, keyCurrency   = ast.StringTerm("cost"), ast.StringTerm("amount_minor"),
		ast.StringTerm("currency")
	keyMetadata, keyID, keyStatus     = ast.StringTerm("metadata"), ast.StringTerm("id"), ast.StringTerm("status")
	keyCounters, keyDecidedAt         = ast.StringTerm("counters"), ast.StringTerm(decidedAt)
	keyVersion, keyOrganizationID     = ast.StringTerm("version"), ast.StringTerm("organization_id")
	keySession, keyClosed, keyExpired = ast.StringTerm("session"), ast.StringTerm("closed"), ast.StringTerm("expired")
	keyOwn                            = ast.StringTerm("own")
	keyOrganization, keyStopped       = ast.StringTerm("organization"), ast.StringTerm("stopped")

	usageWithin   = ast.ObjectTerm(ast.Item(keyExceeded, ast.InternedTerm(false)))
	usageExceeded = ast.ObjectTerm(ast.Item(keyExceeded, ast.InternedTerm(true)))
)

// memberKeys has the names of [condition.Members].
var memberKeys = func() (keys []*ast.Term) {
	for _, m := range condition.Members {
		keys = append(keys, ast.StringTerm(m.Name))
	}
	return keys
}()

// Input returns the input document of a lowered policy: see [Lower]. The String of the document is
// JSON. A resource that cannot be read is an error.
func Input(p *engine.ActionPolicy, in *engine.Input) (ast.Value, error) {
	return queryInput(policyTerm(p), in)
}

func queryInput(policy *ast.Term, in *engine.Input) (ast.Value, error) {
	if in == nil || in.Intent == nil {
		return nil, errors.New("there is no intent")
	}
	readings, err := in.Intent.Readings()
	if err != nil {
		return nil, fmt.Errorf("reading the resource: %w", err)
	}
	resource := ast.StringTerm(in.Intent.Resource)
	agent := ast.StringTerm(in.Intent.AgentID)
	usage := usageWithin
	if in.Usage.Exceeded {
		usage = usageExceeded
	}
	input := ast.NewObject(
		ast.Item(keyIntent, intentTerm(in.Intent, agent, resource)),
		ast.Item(keyDecidedAt, timeTerm(in.DecidedAt)),
		ast.Item(keyAgent, namedAgentTerm(in)),
		ast.Item(keyPolicy, policy),
		ast.Item(keyOrganization, ast.ObjectTerm(ast.Item(keyStopped, ast.InternedTerm(in.Stopped)))),
		ast.Item(keyUsage, usage),
		ast.Item(keyRequireRegistered, ast.InternedTerm(in.RequireRegistered)),
		ast.Item(keyReadings, readingsTerm(&readings)),
	)
	if in.Intent.Metadata != nil {
		input.Insert(keyValues, valuesTerm(in.Intent.Metadata))
	}
	if in.Session.CompiledSession != nil {
		input.Insert(keySession, sessionTerm(in))
	}
	if len(in.Counts) > 0 {
		input.Insert(keyCounters, countersTerm(in.Counts))
		derivedFrom(input, keyCounters, countedMembers...)
	}
	return input, nil
}

// countersTerm returns the value of each counter by its key. A counter that does not count the
// intent has the value null. A counter that is not known is left out.
func countersTerm(counts []condition.Count) *ast.Term {
	members := make([][2]*ast.Term, 0, len(counts))
	for _, c := range counts {
		if !c.Until.IsZero() {
			continue
		}
		n := ast.NullTerm()
		if c.N != condition.Uncounted {
			n = ast.NumberTerm(json.Number(strconv.FormatInt(c.N, 10)))
		}
		members = append(members, ast.Item(ast.StringTerm(c.Counter.Key), n))
	}
	return ast.ObjectTerm(members...)
}

func readingsTerm(r *resource.Readings) *ast.Term {
	return ast.ObjectTerm(
		ast.Item(keyBlocked, sideTerm(r, resource.ForBlock)),
		ast.Item(keyAllowed, sideTerm(r, resource.ForAllow)),
		ast.Item(keyStops, ast.StringTerm(r.Stops().String())),
	)
}

func sideTerm(r *resource.Readings, side resource.Side) *ast.Term {
	terms := make([]*ast.Term, r.Len(side))
	for i := range terms {
		terms[i] = readingTerm(r.At(side, i))
	}
	return ast.ArrayTerm(terms...)
}

func readingTerm(r resource.Reading) *ast.Term {
	names := r.Readers.Names()
	readers := make([]*ast.Term, len(names))
	for i, name := range names {
		readers[i] = ast.InternedTerm(name)
	}
	return ast.ObjectTerm(ast.Item(keyText, ast.StringTerm(r.Text)), ast.Item(keyReaders, ast.ArrayTerm(readers...)))
}

// conditionInput returns the input document of a condition. It has the given lists. A missing list
// is an error.
func conditionInput(in *engine.RegoInput, lists []string) (ast.Value, error) {
	kept := in.Document
	if kept == nil {
		kept = new(any)
	}
	input, ok := (*kept).(ast.Object)
	if !ok {
		agent := ast.StringTerm(in.AgentID)
		input = ast.NewObject(
			ast.Item(keyIntent, intentTerm(in.Intent, agent, ast.StringTerm(in.Resource))),
			ast.Item(keyDecidedAt, timeTerm(in.DecidedAt)),
			ast.Item(keyAgent, agentTerm(agent, in.Agent)),
			ast.Item(keyPolicy, policyTerm(in.Policy)),
		)
		*kept = input
	}
	if len(lists) == 0 {
		return input, nil
	}
	term, err := listsTerm(in.Lists, lists)
	if err != nil {
		return nil, err
	}
	with, _ := input.Merge(ast.NewObject(ast.Item(keyLists, term)))
	return with, nil
}

// intentTerm returns the intent, with agent and resource in place of its own.
func intentTerm(in *engine.Intent, agent, resource *ast.Term) *ast.Term {
	members := make([][2]*ast.Term, 0, len(memberKeys)+2)
	for i, m := range condition.Members {
		text := *in.Text(m.ID)
		switch {
		case text == "" && m.Optional:
		case m.ID == condition.AgentID:
			members = append(members, ast.Item(memberKeys[i], agent))
		case m.ID == condition.Resource:
			members = append(members, ast.Item(memberKeys[i], resource))
		default:
			members = append(members, ast.Item(memberKeys[i], ast.StringTerm(text)))
		}
	}
	if in.Cost != nil {
		members = append(members, ast.Item(keyCost, ast.ObjectTerm(
			ast.Item(keyAmount, integer(in.Cost.AmountMinor)),
			ast.Item(keyCurrency, ast.StringTerm(in.Cost.Currency)),
		)))
	}
	if in.Metadata != nil {
		metadata := make([][2]*ast.Term, 0, len(in.Metadata))
		for k, v := range in.Metadata {
			metadata = append(metadata, ast.Item(ast.StringTerm(k), ast.StringTerm(v)))
		}
		members = append(members, ast.Item(keyMetadata, ast.ObjectTerm(metadata...)))
	}
	return ast.ObjectTerm(members...)
}

func agentTerm(id *ast.Term, status engine.AgentStatus) *ast.Term {
	return ast.ObjectTerm(ast.Item(keyID, id), ast.Item(keyStatus, ast.StringTerm(status.String())))
}

func policyTerm(p *engine.ActionPolicy) *ast.Term {
	return ast.ObjectTerm(
		ast.Item(keyPolicyID, ast.StringTerm(p.PolicyID)),
		ast.Item(keyVersion, integer(p.Version)),
		ast.Item(keyOrganizationID, ast.StringTerm(p.OrganizationID)),
		ast.Item(keyAgentID, ast.StringTerm(p.AgentID)),
		ast.Item(keyStatus, ast.StringTerm(string(p.Status))),
	)
}

// timeTerm returns a time in the form in which rows have it. The zero time is an empty text, so that
// reading it as a time is an error.
func timeTerm(at time.Time) *ast.Term {
	if at.IsZero() {
		return ast.StringTerm("")
	}
	return ast.StringTerm(at.UTC().Format(time.RFC3339Nano))
}

func integer(n int64) *ast.Term { return ast.NewTerm(ast.Number(strconv.FormatInt(n, 10))) }
