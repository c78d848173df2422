package registry_test

import (
	"fmt"
	"time"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/storagetest"
)

// agent returns an agent with every field set; externalID may be empty.
func agent(id, externalID string) *engine.Agent {
	return &engine.Agent{
		ID: id, Name: "deployer", ExternalID: externalID, Status: engine.AgentActive,
		CreatedAt: noon, UpdatedAt: noon.Add(time.Second),
	}
}

func (w *world) agents(org string, limit int) []*engine.Agent {
	w.Helper()
	return storagetest.All(w, limit, func(p storage.Page) ([]*engine.Agent, string, error) { return w.ListAgents(w.ctx, org, p) })
}

func (w *world) wantAgent(org, name string, want *engine.Agent) {
	w.Helper()
	got, err := w.Agent(w.ctx, org, name)
	w.Must("Agent("+name+")", err)
	w.WantSame("Agent("+name+")", got, want)
}

func (w *world) wantNamed(name string, want ...*engine.Agent) {
	w.Helper()
	got, err := w.AgentsNamed(w.ctx, "org", name)
	w.Must("AgentsNamed("+name+")", err)
	w.WantSame("AgentsNamed("+name+")", got, want)
}

// wantCounted checks how many agents of org count towards limit.
func (w *world) wantCounted(org string, limit int, want int64) {
	w.Helper()
	n, err := w.Usage(w.ctx, org, noon)
	w.Must("Usage", err)
	if got := n.Agents.Counted(limit); got != want {
		w.Errorf("%d agents of %q count towards %d, want %d: %+v", got, org, limit, want, n.Agents)
	}
}

var agentTests = []test{
	{"Agent returns the agent whose ID or ExternalID is agentID, or ErrNotFound", func(w *world) {
		w.put("org", agent("a", "team/a"), agent("b", ""))
		w.wantAgent("org", "a", agent("a", "team/a"))
		w.wantAgent("org", "team/a", agent("a", "team/a"))
		w.wantAgent("org", "b", agent("b", ""))
		for _, name := range []string{"", "team/", "team/aa", "c"} {
			_, err := w.Agent(w.ctx, "org", name)
			w.WantErr("Agent("+name+")", err, storage.ErrNotFound)
		}
	}},
	{"AgentsNamed returns every agent whose ID or ExternalID equals name once both are folded, by id", func(w *world) {
		w.put("org", agent("a", "Team/Stra\u00dfe"), agent("c", "C"), agent("team/strassen", ""))
		w.put("other", agent("d", "Team/Strasse"))
		_, err := w.SetAgentStatus(w.ctx, "org", "a", engine.AgentDisabled, noon, 0)
		w.Must("SetAgentStatus", err)
		a := agent("a", "Team/Stra\u00dfe")
		a.Status, a.UpdatedAt = engine.AgentDisabled, noon
		for _, name := range []string{"team/strasse", "Team/Stra\u00dfe", "\uff34eam/strasse"} {
			w.wantNamed(name, a)
		}
		w.wantNamed("c", agent("c", "C"))
		w.wantNamed("A", a)
		w.wantNamed("team/stras")
		w.wantNamed("")
	}},
	{"PutAgent must return ErrConflict when its ID or ExternalID is another agent's ID or ExternalID", func(w *world) {
		w.put("org", agent("a", "x"))
		for _, a := range []*engine.Agent{
			agent("b", "x"), agent("b", "a"), agent("a", ""), agent("x", ""), agent("a", "y"), agent("x", "a"),
		} {
			w.WantErr(fmt.Sprintf("PutAgent(%s, %s)", a.ID, a.ExternalID), w.PutAgent(w.ctx, "org", a, 0), storage.ErrConflict)
		}
		w.WantSame("ListAgents", w.agents("org", 5), []*engine.Agent{agent("a", "x")})
		w.put("other", agent("a", "x"))
		w.put("org", agent("self", "self"))
	}},
	{"PutAgent must return ErrConflict for ids that are equal once both are folded, whoever wins", func(w *world) {
		w.put("org", agent("Straße", "ＣＩ"))
		for _, a := range []*engine.Agent{
			agent("b", "ci"), agent("b", "Ci"), agent("ci", ""), agent("STRASSE", ""), agent("b", "straße"), agent("ＳＴＲＡＳＳＥ", "y"),
		} {
			w.WantErr(fmt.Sprintf("PutAgent(%s, %s)", a.ID, a.ExternalID), w.PutAgent(w.ctx, "org", a, 0), storage.ErrConflict)
		}
		w.put("other", agent("a", "ci"))
		w.put("org", agent("self", "SELF"))
		names := []string{"bot", "BOT", "Bot", "ｂｏｔ", "bOT", "ＢＯＴ", "boT", "BoT"}
		storagetest.OneWinner(w, "PutAgent of one folded id", storage.ErrConflict, func(i int) error {
			return w.PutAgent(w.ctx, "org", agent(fmt.Sprint("racer", i), names[i%len(names)]), 0)
		})
		named, err := w.AgentsNamed(w.ctx, "org", "bot")
		w.Must("AgentsNamed", err)
		if len(named) != 1 {
			w.Errorf("%d agents of one folded id are stored, want 1", len(named))
		}
	}},
	{"disabled agents do not count, up to ten times the limit, and disabling one never meets a limit", func(w *world) {
		const limit = 2
		put := func(id string) error { return w.PutAgent(w.ctx, "org", agent(id, ""), limit) }
		set := func(id string, s engine.AgentStatus) error {
			_, err := w.SetAgentStatus(w.ctx, "org", id, s, noon, limit)
			return err
		}
		for i := range 10*limit + 1 { // each agent is registered and then disabled
			w.Must("PutAgent", put(fmt.Sprint("off", i)))
			w.Must("SetAgentStatus", set(fmt.Sprint("off", i), engine.AgentDisabled))
		}
		w.wantCounted("org", limit, 1) // beyond ten times limit, a disabled agent counts
		w.Must("PutAgent", put("on"))
		w.wantLimit("PutAgent", put("more"), limit)
		w.Must("SetAgentStatus of one that counts", set("off0", engine.AgentActive))
		w.wantLimit("SetAgentStatus", set("off1", engine.AgentActive), limit)
		w.Must("SetAgentStatus to what it is", set("off0", engine.AgentActive))
		for _, id := range []string{"on", "off0", "off0"} {
			w.Must("SetAgentStatus", set(id, engine.AgentDisabled))
		}
		w.wantCounted("org", limit, 2)
		w.Must("SetAgentStatus without a limit", func() error {
			_, err := w.SetAgentStatus(w.ctx, "org", "off1", engine.AgentActive, noon, 0)
			return err
		}())
		_, err := w.SetAgentStatus(w.ctx, "org", "off2", engine.AgentActive, noon, 1)
		w.wantLimit("SetAgentStatus after a downgrade", err, 1)
		_, err = w.SetAgentStatus(w.ctx, "org", "off1", engine.AgentDisabled, noon, 1)
		w.Must("SetAgentStatus after a downgrade", err)
	}},
	{"PutAgent must return a LimitError when org has maxAgents agents already", func(w *world) {
		w.Must("PutAgent", w.PutAgent(w.ctx, "org", agent("a", "x"), 2))
		w.Must("PutAgent", w.PutAgent(w.ctx, "org", agent("b", ""), 2))
		w.wantLimit("PutAgent", w.PutAgent(w.ctx, "org", agent("c", "z"), 2), 2)
		_, err := w.Agent(w.ctx, "org", "z")
		w.WantErr("Agent", err, storage.ErrNotFound)
		w.Must("PutAgent elsewhere", w.PutAgent(w.ctx, "other", agent("a", ""), 1))
		w.put("org", agent("c", ""))
	}},
	{"SetAgentStatus works the kill switch and returns the agent as it then is", func(w *world) {
		w.put("org", agent("a", "x"))
		want := agent("a", "x")
		for i, name := range []string{"a", "x"} {
			want.Status = []engine.AgentStatus{engine.AgentDisabled, engine.AgentActive}[i]
			want.UpdatedAt = noon.Add(time.Duration(i+1) * time.Minute)
			got, err := w.SetAgentStatus(w.ctx, "org", name, want.Status, want.UpdatedAt, 0)
			w.Must("SetAgentStatus", err)
			w.WantSame("SetAgentStatus", got, want)
			w.wantAgent("org", "x", want)
		}
		changes, err := w.docs.Changes(w.ctx, storage.Change{}, 99)
		w.Must("Changes", err)
		got, err := w.SetAgentStatus(w.ctx, "org", "a", want.Status, noon.Add(time.Hour), 0)
		w.Must("SetAgentStatus again", err)
		w.WantSame("SetAgentStatus again", got, want)
		after, err := w.docs.Changes(w.ctx, storage.Change{}, 99)
		w.Must("Changes", err)
		w.WantSame("changes once a status is set again", after, changes)
		_, err = w.SetAgentStatus(w.ctx, "org", "b", engine.AgentDisabled, noon, 0)
		w.WantErr("SetAgentStatus of no agent", err, storage.ErrNotFound)
	}},
	{"ListAgents returns org's agents by creation time, then id", func(w *world) {
		var want []*engine.Agent
		for _, created := range []time.Time{{}, time.Unix(-5, 7), time.Unix(0, 0), noon, noon.Add(1), noon.AddDate(900, 0, 0)} {
			for _, id := range []string{"a", "a\x00", "b"} {
				a := agent(created.UTC().Format(time.RFC3339Nano)+id, "")
				a.CreatedAt = created
				want = append(want, a)
			}
		}
		for i := range want {
			w.put("org", want[(i*7)%len(want)])
		}
		for _, limit := range []int{1, 4, len(want), len(want) + 1} {
			w.WantSame("ListAgents", w.agents("org", limit), want)
		}
	}},
}
