package main

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"writ.example/writ/authoring/workspace"
	"writ.example/writ/cmd/remote"
	"writ.example/writ/engine"
	"writ.example/writ/examples"
	"writ.example/writ/internal/tlsfiles"
)

// api tries the API of a server as a client would.
func (c *doctorCmd) api(ctx context.Context, s streams) (all []finding, err error) {
	add := func(name string, f finding) {
		f.Check = name
		all = append(all, f)
	}
	p, known, err := c.anybody()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	seen, err := remote.Published(ctx, newClient(p.URL, "").Call)
	if err != nil {
		add("API", failed("start the server, or name it by --url", "%s: %v", p.URL, tlsfiles.Advise(err)))
		return all, nil
	}
	add("API", found("%s answers, and publishes %d keys", p.URL, len(seen.Keys)))
	add("API clock", apiClock(seen.Time, began, time.Now()))
	if !known {
		add("API denial", notExamined("want a credential: WRIT_API_KEY, or writ login"))
		return all, nil
	}
	o := newOrganization(s, p, c.from(p))
	me, err := remote.Whoami(ctx, o.Call)
	if err != nil {
		add("credential", failed("writ login stores another one", "%v", err))
		return all, nil
	}
	f := found("%s", me)
	if me.ExpiresAt != nil && time.Until(*me.ExpiresAt) < 7*24*time.Hour {
		f = warned("make another one in time: writ api-key create, or writ token operator where the server is",
			"%s ends at %s", me, me.ExpiresAt.Format(time.RFC3339))
	}
	add("credential", f)
	add("API denial", apiDenial(ctx, o.Call))
	return all, nil
}

// apiClock compares the time of a server, in whole seconds, with this machine's time.
func apiClock(server, before, after time.Time) finding {
	const do = "set the clock that is wrong: clocks date receipts, and say when tokens end"
	switch {
	case server.IsZero():
		return notExamined("its answers have no Date")
	case server.Add(time.Second + maxAhead).Before(before):
		return failed(do, "it is %v behind this machine", before.Sub(server).Round(time.Second))
	case server.Add(-maxAhead).After(after):
		return failed(do, "it is %v ahead of this machine", server.Sub(after).Round(time.Second))
	}
	return found("within %v of this machine's", maxAhead)
}

// apiDenial has the server simulate an example that must be denied. Nothing is stored or metered.
func apiDenial(ctx context.Context, call workspace.Call) finding {
	const broken = "let no agent in by this address: what is in front of the server, or the server, does not pass on " +
		"its decisions"
	set, err := examples.Load()
	if err != nil {
		return failed("install writ again", "%v", err)
	}
	i := slices.IndexFunc(set.Cases, func(c examples.Case) bool {
		return c.Want == engine.Deny && slices.Contains(c.Codes, engine.CodeResourceBlocked)
	})
	var got struct {
		Decision string   `json:"decision"`
		Reasons  []string `json:"reasons"`
	}
	_, err = call(ctx, workspace.Request{Method: http.MethodPost, Path: "/v1/policy/simulate", Body: object{
		"policy": set.Policies[set.Cases[i].Policy], "rules": []object{}, "intent": set.Intents[i],
	}}, &got)
	switch {
	case remote.Refused(err):
		return notExamined("the credential lacks the scope policy:evaluate")
	case err != nil:
		var answer *workspace.AnswerError
		if errors.As(err, &answer) {
			return failed("docs/errors.md has the codes", "%v", err)
		}
		return failed("see API", "%v", err)
	case got.Decision != engine.Deny.String():
		return failed(broken, "an intent that must be denied was decided %q", got.Decision)
	}
	return found("an intent that must be denied is denied: %s", texts(got.Reasons))
}
