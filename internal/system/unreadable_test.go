package system

import (
	"strings"
	"testing"
	"time"

	"writ.example/writ/engine"
	"writ.example/writ/storage/embedded"
	"writ.example/writ/storage/registry"
)

// TestDecision_Resources_PoliciesThatNoLongerCompileAreNamedAtStart checks "A stored policy version
// that no longer compiles … is named at start".
func TestDecision_Resources_PoliciesThatNoLongerCompileAreNamedAtStart(t *testing.T) {
	data, _ := newData(t)
	store, err := embedded.Open(data.Store(), embedded.Options{})
	must(t, err)
	p := &engine.ActionPolicy{
		PolicyID: "0b0f6f6e-3c4e-4f54-9a71-2f3c6f1f7a10", Version: 7, OrganizationID: "old", AgentID: "*", AllowedActionTypes: []string{"*"},
		BlockedResourcePatterns: []string{"a["}, Status: engine.StatusActive, UpdatedAt: time.Unix(1, 0),
	}
	if _, err := registry.New(store).PutPolicy(t.Context(), p, 0); err != nil {
		t.Fatal(err)
	}
	must(t, store.Close())
	w := start(t, data)
	waitFor(t, "the log to name the policy", func() bool {
		log := w.stderr.String()
		return strings.Contains(log, "no longer compiles") && strings.Contains(log, p.PolicyID) && strings.Contains(log, "version=7")
	})
	w.stop(t)
}
