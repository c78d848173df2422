package console

import (
	"net/http"
	"net/url"
	"slices"
	"time"
)

func (v *visit) agents() error {
	return v.listed("agents", "Agents", new(list[*agent]), under("agents"))
}

// listed answers with one page of a list.
func (v *visit) listed(name, title string, into any, path string) error {
	q := url.Values{"limit": {"50"}}
	if at := v.r.URL.Query().Get("cursor"); at != "" {
		q.Set("cursor", at)
	}
	said, err := lacks(v.get(with(path, q), into))
	if err != nil {
		return err
	}
	return v.show(name, title, title, struct {
		List  any
		Lacks string
	}{into, said})
}

func (v *visit) agent() error {
	var body struct {
		It      *agent
		Recent  part[list[*row]]
		Keys    part[[]*token]
		Changes changesOf
		Done    string
	}
	id := v.r.PathValue("id")
	if err := v.get(under("agents", id), &body.It); err != nil {
		return err
	}
	name := body.It.ExternalID
	if name == "" {
		name = body.It.ID
	}
	// Without a start the decisions of an agent that asked for none would be looked for in the whole history.
	since := "&from=" + body.It.CreatedAt.UTC().Format(time.RFC3339)
	if err := body.Recent.read(v, lastWith("agent_id", name)+since); err != nil {
		return err
	}
	if err := body.Keys.read(v, with(under("tokens"), url.Values{"limit": {"100"}})); err != nil {
		return err
	}
	if err := body.Changes.read(v, "agent", id); err != nil {
		return err
	}
	body.Keys.It = slices.DeleteFunc(body.Keys.It, func(k *token) bool { return k.AgentID != name && k.AgentID != id })
	if done := v.r.URL.Query().Get("done"); done == body.It.Status {
		body.Done = done
	}
	return v.show("agent", short(body.It.Name), "Agents", body)
}

// statuses are the two steps by their names in a path.
var statuses = map[string]string{"disable": "disabled", "enable": "active"}

func (v *visit) askStatus(to string) error {
	id := v.r.PathValue("id")
	var a agent
	if err := v.get(under("agents", id), &a); err != nil {
		return err
	}
	c := confirm{
		Question: "Disable " + short(a.Name) + "?", Button: "Disable", Stops: true,
		Text: "Every decision for this agent is then a deny, on every replica, from the moment that the next page " +
			"is shown. What it was allowed before and has not done yet is not taken back.",
		Action: pageOf("agents", id, to), Revision: a.Status, Back: pageOf("agents", id),
	}
	if to == "enable" {
		c.Question, c.Button, c.Stops = "Enable "+short(a.Name)+"?", "Enable", false
		c.Text = "Its policy decides again what this agent may do."
	}
	return v.confirm("Agents", c)
}

// setStatus disables or enables an agent. Disabling is never refused for having been shown stale.
func (v *visit) setStatus(step string) error {
	if err := v.form(); err != nil {
		return err
	}
	id, to := v.r.PathValue("id"), statuses[step]
	if to == "active" {
		var a agent
		if err := v.get(under("agents", id), &a); err != nil {
			return err
		}
		if err := unchanged("The agent", v.r.PostForm.Get("revision"), a.Status); err != nil {
			return err
		}
	}
	err := v.do(http.MethodPatch, under("agents", id, "status"), map[string]string{"status": to}, nil)
	if err := v.unsure("the agent is "+to+" on every replica", err); err != nil {
		return err
	}
	return v.to(pageOf("agents", id) + "?done=" + to)
}
