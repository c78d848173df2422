package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/google/uuid"

	"writ.example/writ/engine"
	"writ.example/writ/examples"
)

// agentID returns the id of the agent with an external id. If there is no such agent, agentID
// registers one.
func (d *demo) agentID(ctx context.Context, externalID string) (string, error) {
	var list struct {
		Data []engine.Agent `json:"data"`
	}
	if err := d.operator.Do(ctx, http.MethodGet, "/v1/agents?limit=500", nil, &list); err != nil {
		return "", err
	}
	for _, a := range list.Data {
		if a.ExternalID == externalID {
			return a.ID, nil
		}
	}
	var a engine.Agent
	body := object{"name": "Release bot", "externalId": externalID}
	err := d.operator.Do(ctx, http.MethodPost, "/v1/agents", body, &a)
	return a.ID, err
}

// killSwitch disables the deploy agent, sends the first deploy again, and enables the agent.
func (d *demo) killSwitch(ctx context.Context) error {
	i := slices.IndexFunc(d.set.Cases, func(c examples.Case) bool {
		return c.Policy == "deploys" && c.Want == engine.Allow
	})
	in := *d.set.Intents[i]
	id, err := d.agentID(ctx, in.AgentID)
	if err != nil {
		return err
	}
	path := "/v1/agents/" + id + "/status"
	fmt.Fprintf(d.out, "\nKill switch of %s, the same %s twice:\n", in.AgentID, in.ActionType)
	for _, step := range []struct {
		status engine.AgentStatus
		want   engine.Decision
	}{{engine.AgentDisabled, engine.Deny}, {engine.AgentActive, engine.Allow}} {
		if err := d.operator.Do(ctx, http.MethodPatch, path, object{"status": step.status}, nil); err != nil {
			return err
		}
		in.IntentID = uuid.NewString()
		res, err := d.evaluate(ctx, &in, "")
		if err != nil {
			return err
		}
		d.step(string(step.status), res, step.want)
	}
	return nil
}
