package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/go-json-experiment/json/jsontext"

	"writ.example/writ/authoring/workspace"
	"writ.example/writ/engine"
)

const agentsPath = "/v1/agents"

// Agents returns all agents.
func Agents(ctx context.Context, call workspace.Call) ([]jsontext.Value, error) {
	return all(ctx, call, agentsPath)
}

// PrintAgents prints agents as a table.
func PrintAgents(w io.Writer, items []jsontext.Value) error {
	return table(w, []string{"AGENT", "STATUS", "NAME", "UPDATED", "ID"}, items, func(a engine.Agent) []string {
		return []string{agentName(a), string(a.Status), a.Name, Time(a.UpdatedAt), a.ID}
	})
}

// agentName is the name by which intents name an agent.
func agentName(a engine.Agent) string {
	if a.ExternalID != "" {
		return a.ExternalID
	}
	return a.ID
}

// Register registers an agent by the id that its intents name, and returns it.
func Register(ctx context.Context, call workspace.Call, id, name string) (jsontext.Value, error) {
	body := map[string]string{"name": name, "externalId": id}
	return sendAgent(ctx, call, http.MethodPost, agentsPath, body, engine.AgentActive)
}

// SetStatus throws the kill switch of an agent, or releases it, and returns the agent. It is in force on every
// replica then. If there is no such agent, the error says which one was meant.
func SetStatus(ctx context.Context, call workspace.Call, id string, status engine.AgentStatus) (jsontext.Value, error) {
	body := map[string]engine.AgentStatus{"status": status}
	doc, err := sendAgent(ctx, call, http.MethodPatch, agentsPath+"/"+url.PathEscape(id)+"/status", body, status)
	switch {
	case answered(err, http.StatusNotFound):
		return nil, fmt.Errorf("there is no agent %s%s", id, meantAgent(ctx, call, id))
	case err != nil && !told(err):
		return nil, fmt.Errorf("%w\nit is not known whether the agent is %s now: try again", err, status)
	}
	return doc, err
}

// sendAgent sends a body and returns the agent of the answer, which must have a status.
func sendAgent(
	ctx context.Context, call workspace.Call, method, path string, body any, status engine.AgentStatus,
) (jsontext.Value, error) {
	doc, err := send(ctx, call, method, path, body)
	var a engine.Agent
	if err == nil {
		err = decode(doc, &a)
	}
	if err == nil && a.Status != status {
		err = fmt.Errorf("the server answers that the agent is %q", a.Status)
	}
	return doc, err
}

// meantAgent returns what [Meant] does of the agents, as far as the credential may see them.
func meantAgent(ctx context.Context, call workspace.Call, id string) string {
	items, err := Agents(ctx, call)
	var names []string
	for _, item := range items {
		var a engine.Agent
		if err == nil && decode(item, &a) == nil {
			names = append(names, agentName(a))
		}
	}
	if meant := Meant(id, names); meant != "" {
		return meant
	}
	return ": writ agent list has those that are registered, and writ agent register adds one"
}

// AgentChanged says what became of an agent.
func AgentChanged(w io.Writer, doc jsontext.Value) error {
	var a engine.Agent
	if err := decode(doc, &a); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "%s is %s, in force on every replica\n", agentName(a), a.Status)
	return err //nolint:wrapcheck // of the standard output
}

// all returns all items of a list.
func all(ctx context.Context, call workspace.Call, path string) ([]jsontext.Value, error) {
	const limit = 100_000 // more agents or keys than a plan has
	items, more, err := List(ctx, call, path, nil, limit)
	if more {
		err = errors.Join(err, fmt.Errorf("%s has more than %d items", path, limit))
	}
	return items, err
}
