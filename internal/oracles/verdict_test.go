package oracles

import (
	"testing"
	"time"

	"writ.example/writ/engine"
)

// verdict is the verdict on the resource of an intent.
type verdict string

const (
	allowed    verdict = "allowed"
	blocked    verdict = "blocked"
	notAllowed verdict = "not allowed"
	refused    verdict = "refused" // 400: the resource has no single meaning
)

const id = "0b1f6471-1bf0-4dda-aec3-111122223333"

// policy compiles a policy that restricts only resources.
func policy(allow, block []string) (*engine.Policy, error) {
	return engine.CompilePolicy(&engine.ActionPolicy{
		PolicyID: id, Version: 1, OrganizationID: "org", AgentID: "*",
		AllowedActionTypes: []string{"*"}, AllowedResourcePatterns: allow, BlockedResourcePatterns: block,
		Status: engine.StatusActive, UpdatedAt: time.Unix(0, 0).UTC(),
	})
}

func mustPolicy(t *testing.T, allow, block []string) *engine.Policy {
	t.Helper()
	p, err := policy(allow, block)
	if err != nil {
		t.Fatalf("CompilePolicy(allow %q, block %q): %v", allow, block, err)
	}
	return p
}

// decide returns the verdict of p on a resource.
func decide(p *engine.Policy, resource string) verdict {
	in := &engine.Intent{
		IntentID: id, PolicyID: id, AgentID: "agent", ActionType: "http.get", Resource: resource,
		IssuedAt: "2026-01-02T03:04:05Z",
	}
	if in.Validate() != nil {
		return refused
	}
	r := engine.Evaluate(p, nil, &engine.Input{Intent: in, Agent: engine.AgentActive})
	if r.Decision == engine.Allow {
		return allowed
	}
	for _, f := range r.Findings {
		if f.Code == engine.CodeResourceBlocked {
			return blocked
		}
	}
	return notAllowed
}
