package bench

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"writ.example/writ/bench/corpus"
	"writ.example/writ/bench/load"
	"writ.example/writ/bench/proc"
	"writ.example/writ/engine"
	"writ.example/writ/rego"
)

// opa starts an OPA server in one of three forms. Lean has the reference policy, written for speed: it has sets, and
// one regular expression for each list of patterns, and answers true or false. Log is the same with a decision log.
// Exported has the module that writ exports, and answers with reasons.
func (p Peers) opa(ctx context.Context, form string) (*Subject, error) {
	binary, err := p.find(ctx, "opa", opaVersion, fetchOPA)
	if err != nil {
		return nil, err
	}
	in := corpus.AllowedIntent()
	in.IntentID = load.IntentID
	var input any = map[string]any{"intent": in}
	module, path, allowed := leanOf(corpus.ReferencePolicy()), "/v1/data/bench/allow", `"result":true`
	what := "a lean policy, which answers true or false; no key, reasons, receipt, history or meter"
	args := []string{binary, "run", "--server", "--log-level", "error", "--disable-telemetry"}
	switch form {
	case "opa-log":
		what = strings.Replace(what, "; no", ", with a decision log; no", 1)
		args = append(args, "--set", "decision_logs.console=true")
	case "opa-exported":
		what = "the module that writ rego exports, with reasons; no key, receipt, history or meter"
		allowed = "policy.allowed"
		if module, path, err = exported(corpus.ReferencePolicy()); err != nil {
			return nil, err
		}
		if input, err = inputOf(corpus.ReferencePolicy(), in); err != nil {
			return nil, err
		}
	}
	body, err := json.Marshal(map[string]any{"input": input}, json.Deterministic(true))
	if err != nil {
		return nil, err
	}
	return p.serve(ctx, &Subject{
		About:  About{form, strings.Join(args, " ") + ": " + what},
		target: &load.Target{URL: &url.URL{Scheme: "http", Path: path}, Body: body, Allowed: allowed, Intents: 1},
	}, "policy.rego", []byte(module), func(addr, file string) []string {
		all := append(slices.Clone(args), "--addr", addr, file)
		if form != "opa-log" {
			return all
		}
		// The log goes to a file: what a server says otherwise is kept in the memory of this process.
		return append([]string{"sh", "-c", `exec "$@" 2>"$0"`, filepath.Join(filepath.Dir(file), "log")}, all...)
	})
}

// exported returns the module that writ exports of a policy, and the path of its reasons.
func exported(p *engine.ActionPolicy) (module, path string, err error) {
	files, err := rego.Lower(p, nil, nil)
	if err != nil {
		return "", "", err
	}
	return files[0].Source, "/v1/data/" + strings.ReplaceAll(rego.PackageName(p.PolicyID), ".", "/") + "/reasons", nil
}

// inputOf returns the input of the exported module for an intent.
func inputOf(p *engine.ActionPolicy, in *engine.Intent) (any, error) {
	if err := in.Validate(); err != nil { // reads the resource
		return nil, err
	}
	text, err := rego.InputJSON(p, &engine.Input{Intent: in, Agent: engine.AgentUnregistered})
	if err != nil {
		return nil, err
	}
	var input any
	return input, json.Unmarshal(text, &input)
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

// leanOf renders a policy as a module of the package bench, which says whether the policy allows an intent.
func leanOf(p *engine.ActionPolicy) string {
	exact, globs := split(p.AllowedActionTypes)
	deniedExact, deniedGlobs := split(p.DeniedActionTypes)
	return fmt.Sprintf(`package bench

default allow := false

allow if {
	input.intent.agent_id == %q
	listed
	not denied
	regex.match(%s, input.intent.resource)
	not regex.match(%s, input.intent.resource)
	not costly
}

costly if input.intent.cost.amount_minor > %d

costly if input.intent.cost.currency != %q

denied if input.intent.action_type in {%s}

denied if regex.match(%s, input.intent.action_type)

listed if input.intent.action_type in {%s}

listed if regex.match(%s, input.intent.action_type)
`, p.AgentID, raw(union(p.AllowedResourcePatterns)), raw(union(p.BlockedResourcePatterns)), *p.MaxCostMinor, p.Currency,
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
