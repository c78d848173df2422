package bench

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"writ.example/writ/bench/corpus"
	"writ.example/writ/bench/load"
	"writ.example/writ/engine"
)

// cerbos starts a Cerbos with the reference policy, with its audit log in a file or without it.
func (p Peers) cerbos(ctx context.Context, form string) (*Subject, error) {
	binary, err := p.find(ctx, "cerbos", cerbosVersion, fetchCerbos)
	if err != nil {
		return nil, err
	}
	policy, err := cerbosOf(corpus.ReferencePolicy())
	if err != nil {
		return nil, err
	}
	grpc, err := freeAddress()
	if err != nil {
		return nil, err
	}
	audit := "off"
	if form == "cerbos-audit" {
		audit = "on"
	}
	body, err := json.Marshal(cerbosRequest(corpus.AllowedIntent()), json.Deterministic(true))
	if err != nil {
		return nil, err
	}
	return p.serve(ctx, &Subject{
		About: About{form, binary + " server: the same policy, audit " + audit +
			"; no key, reasons, receipt, history or meter"},
		target: &load.Target{URL: &url.URL{Scheme: "http", Path: "/api/check/resources"}, Body: body,
			Allowed: "EFFECT_ALLOW", Intents: 1},
	}, "policy.json", policy, func(addr, file string) []string {
		args := []string{binary, "server", "--log-level=error"}
		for _, setting := range []string{
			"server.httpListenAddr=" + addr, "server.grpcListenAddr=" + grpc,
			"server.requestLimits.maxActionsPerResource=1",
			"storage.driver=disk", "storage.disk.directory=" + filepath.Dir(file), "storage.disk.watchForChanges=false",
			"audit.enabled=" + strconv.FormatBool(audit == "on"), "audit.backend=file",
			"audit.file.path=" + filepath.Join(filepath.Dir(file), "audit.log"),
			"telemetry.disabled=true",
		} {
			args = append(args, "--set="+setting)
		}
		return args
	})
}

// cerbosAction returns an action type in the form that Cerbos uses. The wildcards of Cerbos
// expect colons between the parts of an action.
func cerbosAction(actionType string) string { return strings.ReplaceAll(actionType, ".", ":") }

// cerbosOf renders a policy as a Cerbos resource policy for the resource kind "intent".
func cerbosOf(p *engine.ActionPolicy) ([]byte, error) {
	when := func(condition string) any { return map[string]any{"match": map[string]any{"expr": condition}} }
	rule := func(effect, condition string, actions ...string) any {
		for i := range actions {
			actions[i] = cerbosAction(actions[i])
		}
		r := map[string]any{"actions": actions, "effect": effect, "roles": []string{"agent"}}
		if condition != "" {
			r["condition"] = when(condition)
		}
		return r
	}
	matches := func(globs []string) string { return fmt.Sprintf("R.attr.resource.matches(%q)", union(globs)) }
	return json.Marshal(map[string]any{
		"apiVersion": "api.cerbos.dev/v1",
		"resourcePolicy": map[string]any{
			"version": "default", "resource": "intent",
			"rules": []any{
				rule("EFFECT_DENY", "", p.DeniedActionTypes...),
				rule("EFFECT_DENY", matches(p.BlockedResourcePatterns), "*"),
				rule("EFFECT_DENY",
					fmt.Sprintf("has(R.attr.cost) && (R.attr.cost.amount_minor > %d || R.attr.cost.currency != %q)",
						*p.MaxCostMinor, p.Currency), "*"),
				rule("EFFECT_ALLOW", fmt.Sprintf("P.id == %q && %s", p.AgentID, matches(p.AllowedResourcePatterns)),
					p.AllowedActionTypes...),
			},
		},
	}, json.Deterministic(true))
}

// cerbosRequest returns a request to Cerbos about an intent.
func cerbosRequest(in *engine.Intent) any {
	return map[string]any{
		"requestId": load.IntentID,
		"principal": map[string]any{"id": in.AgentID, "roles": []string{"agent"}},
		"resources": []any{map[string]any{
			"actions": []string{cerbosAction(in.ActionType)},
			"resource": map[string]any{
				"kind": "intent", "id": load.IntentID,
				"attr": map[string]any{"resource": in.Resource, "cost": in.Cost, "metadata": in.Metadata,
					"issued_at": in.IssuedAt},
			},
		}},
	}
}
