package console

import (
	"cmp"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"writ.example/writ/engine"
)

func (v *visit) agents() error {
	var body struct {
		List         list[*agent]
		Lacks        string
		Unregistered []string // names in intents of 24 hours that have no kill switch
	}
	q, at := url.Values{"limit": {"50"}}, v.r.URL.Query().Get("cursor")
	if at != "" {
		q.Set("cursor", at)
	}
	var err error
	if body.Lacks, err = lacks(v.get(with(under("agents"), q), &body.List)); err != nil {
		return err
	}
	if body.Lacks == "" && at == "" {
		if body.Unregistered, err = v.unregistered(); err != nil {
			return err
		}
	}
	return v.show("agents", "Agents", "Agents", body)
}

// maxName is the number of bytes of the longest name that the list offers to register: its address has the name, too.
const maxName = 256

// unregistered returns the names under which unregistered agents asked in 24 hours, as far as the credential may see.
func (v *visit) unregistered() ([]string, error) {
	counts, err := v.counts("agent_id", "1h", 24*time.Hour)
	if err != nil || counts.Lacks != "" {
		return nil, err
	}
	asked := counts.It.sum()
	if len(asked) == 0 {
		return nil, nil
	}
	registered, more, err := all[*agent](v, under("agents"), url.Values{})
	if err != nil || more {
		return nil, err
	}
	for _, a := range registered {
		delete(asked, engine.FoldID(cmp.Or(a.ExternalID, a.ID)))
	}
	// A name that was scrubbed is not the agent's, and one that is no id cannot be registered.
	maps.DeleteFunc(asked, func(name string, _ int64) bool {
		return strings.HasPrefix(name, "[") || len(name) > maxName
	})
	return slices.Sorted(maps.Keys(asked)), nil
}

func (v *visit) newAgent() error {
	return v.show("newagent", "Register an agent", "Agents", v.r.URL.Query().Get("id"))
}

// register registers an agent, and leads to its page, where it can be disabled. Sent twice it is refused by the API.
func (v *visit) register() error {
	if err := v.form(); err != nil {
		return err
	}
	id := strings.TrimSpace(v.r.PostForm.Get("id"))
	in := map[string]string{"name": cmp.Or(strings.TrimSpace(v.r.PostForm.Get("name")), id), "externalId": id}
	var made agent
	if err := v.do(http.MethodPost, under("agents"), in, &made); err != nil {
		return err
	}
	return v.to(pageOf("agents", made.ID) + "?done=registered")
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
	if done := v.r.URL.Query().Get("done"); done == body.It.Status || done == "registered" {
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
