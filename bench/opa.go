package bench

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-json-experiment/json"

	"writ.example/writ/bench/corpus"
	"writ.example/writ/bench/load"
	"writ.example/writ/bench/proc"
	"writ.example/writ/engine"
)

// opa starts an OPA server with the reference policy. The policy is written for speed: it has
// sets, and one regular expression for each list of patterns. The requests ask for the reasons
// of a decision, also if it allows.
func (p Peers) opa(ctx context.Context) (*Subject, error) {
	binary, err := p.find(ctx, "opa", opaVersion, fetchOPA)
	if err != nil {
		return nil, err
	}
	in := corpus.AllowedIntent()
	in.IntentID = load.IntentID
	body, err := json.Marshal(map[string]any{"input": map[string]any{"intent": in}}, json.Deterministic(true))
	if err != nil {
		return nil, err
	}
	return p.serve(ctx, &Subject{
		About: About{"opa", binary + " run --server: the same policy with reasons; no key, receipt, history or meter"},
		target: &load.Target{URL: &url.URL{Scheme: "http", Path: "/v1/data/bench/reasons"}, Body: body,
			Allowed: "policy.allowed", Intents: 1},
	}, "policy.rego", []byte(regoOf(corpus.ReferencePolicy())), func(addr, file string) []string {
		return []string{binary, "run", "--server", "--addr", addr, "--log-level", "error", "--disable-telemetry", file}
	})
}

// serve starts the server of a subject at a free address. The server gets its policy in a file
// of a new directory. command returns the command line of the server.
func (p Peers) serve(
	ctx context.Context, s *Subject, name string, policy []byte, command func(addr, file string) []string,
) (*Subject, error) {
	addr, err := freeAddress()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "writ-bench-"+s.Name+"-")
	if err != nil {
		return nil, err
	}
	clean := func() error { return os.RemoveAll(dir) }
	file := filepath.Join(dir, name)
	if err := os.WriteFile(file, policy, 0o600); err != nil {
		return nil, errors.Join(err, clean())
	}
	args := command(addr, file)
	started, err := startProcess(ctx, addr, p.Processors, nil, args[0], args[1:]...)
	if err != nil {
		return nil, errors.Join(err, clean())
	}
	s.target.URL.Host, s.pid = addr, started.cmd.Process.Pid
	s.group = proc.Group(s.pid)
	s.stop = func() error { return errors.Join(started.stop(), clean()) }
	return s, nil
}

// regoOf renders a policy as a module of the package bench.
func regoOf(p *engine.ActionPolicy) string {
	exact, globs := split(p.AllowedActionTypes)
	deniedExact, deniedGlobs := split(p.DeniedActionTypes)
	return fmt.Sprintf(`package bench

reasons := findings if count(findings) > 0

else := {"policy.allowed: version %d of the policy allows it"}

findings contains "agent.mismatch: the policy is another agent's" if input.intent.agent_id != %q

findings contains sprintf("action.denied: %%s is denied", [input.intent.action_type]) if denied

findings contains sprintf("action.unlisted: %%s is not allowed", [input.intent.action_type]) if not allowed

findings contains sprintf("resource.blocked: %%s is blocked", [input.intent.resource]) if {
	regex.match(%[3]s, input.intent.resource)
}

findings contains sprintf("resource.unlisted: %%s is not allowed", [input.intent.resource]) if {
	not regex.match(%[4]s, input.intent.resource)
}

findings contains sprintf("cost.exceeded: %%d is above %[5]d", [input.intent.cost.amount_minor]) if {
	input.intent.cost.amount_minor > %[5]d
}

findings contains "cost.currency: another currency" if input.intent.cost.currency != %[6]q

denied if input.intent.action_type in {%[7]s}

denied if regex.match(%[8]s, input.intent.action_type)

allowed if input.intent.action_type in {%[9]s}

allowed if regex.match(%[10]s, input.intent.action_type)
`, p.Version, p.AgentID, raw(union(p.BlockedResourcePatterns)), raw(union(p.AllowedResourcePatterns)), *p.MaxCostMinor, p.Currency,
		quoted(deniedExact), raw(union(deniedGlobs)), quoted(exact), raw(union(globs)))
}

// split separates names from globs.
func split(entries []string) (exact, globs []string) {
	for _, e := range entries {
		if strings.ContainsAny(e, "*?{[") {
			globs = append(globs, e)
		} else {
			exact = append(exact, e)
		}
	}
	return exact, globs
}

// raw quotes a text as a raw string. The text must not have a backquote.
func raw(text string) string { return "`" + text + "`" }

func quoted(texts []string) string {
	all := make([]string, len(texts))
	for i, t := range texts {
		all[i] = fmt.Sprintf("%q", t)
	}
	return strings.Join(all, ", ")
}
