package system

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"

	"writ.example/writ/examples"
)

// TestNames_NoSpellingIsAnotherAgent runs [mutatedNames] on one process. With WRIT_SOAK=1 (make
// soak) it tries 20,000 names.
func TestNames_NoSpellingIsAnotherAgent(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED in short mode: starts a process and sends it hundreds of intents")
	}
	data, token := newData(t)
	mutatedNames(t, &cluster{data: data, token: token})
}

// names requests decisions about many spellings of names.
type names struct {
	spelling
	t       *testing.T
	c       *cluster
	api     client
	sender  sender
	tried   int
	allowed int
	waiting string // the id of a disabled agent
	// ruled has the names of each agent for which a rule denies everything.
	ruled   [][]string
	limited []*limited
}

// limited is an agent for which a rule allows only a few intents.
type limited struct {
	names, actions []string
	words          bool // whether action types are spelled too
	allowed        int
}

const fewIntents = 5

// several returns how many spellings of a name are sent at once: n, or more in a soak test.
func several(n int) int { return n * rounds(1, 5) }

// mutatedNames requests decisions about other spellings of agents' names and of action types.
// Spellings differ in case, width or invisible characters, or are equal after NFKC. An agent is
// named by its id or its external id. The test checks "An agent is one" and check 4 of
// decisions.md. A limit over time, a kill switch, a denied type and a rule about an agent must
// apply to every spelling. A restart must forget no count.
func mutatedNames(t *testing.T, c *cluster) {
	replicas, n, many := 1, rounds(300, 20_000), object{
		"name": "free", "evaluations": 1_000_000_000, "policies": 10, "agents": 1_000_000, "retention_days": 7,
	}
	if c.set != nil {
		replicas = 3
	}
	pro := object{"name": "pro", "evaluations": 1, "policies": 1, "agents": 1, "retention_days": 7}
	c.flags = []string{plansFlag(t, object{"free": many, "pro": pro}), "--rate-limit-credential=off", "--rate-limit-changes=off"}
	c.start(t, replicas)
	w := &names{spelling: spelling{rand.New(rand.NewPCG(29, 2))}, t: t, c: c, api: newClient(t, c.replicas[0].url, c.token)}
	w.sender = newSender(t, c.token, 40)
	w.prepare()
	rows := []func(base string){w.limit, w.limitOfATypeSpelled, w.killSwitch, w.deniedTypes, w.rulesOfAgents, w.invisible}
	for i := 0; w.tried < n && !t.Failed(); i++ {
		base := fmt.Sprintf(w.one("bot-%d", "team-a/agent_%d", "ann%d@corp.example", "café-%d", "office.%d", "straße-%d", "ωmega:%d", "task-iv-%d", "Åsk%d"), i)
		rows[i%len(rows)](base)
	}
	w.restart()
	t.Logf("%d names tried over %d replicas, %d allowed as they should be", w.tried, replicas, w.allowed)
	if w.allowed < w.tried/50 {
		t.Errorf("%d of %d were allowed, want more: nothing else shows that the others were refused for their names", w.allowed, w.tried)
	}
	c.stop(t)
}

// prepare stores the policy and the rules.
func (w *names) prepare() {
	w.t.Helper()
	w.api.do(w.t, http.MethodPost, "/v1/policies/register", object{"policy": object{
		"policy_id": testPolicy, "version": 2, "organization_id": examples.Organization, "agent_id": "*", "allowed_action_types": []string{"*"},
		"denied_action_types": []string{"db.drop_table", "secrets.*"}, "status": "active", "updated_at": "2026-11-01T09:00:00Z",
	}}, http.StatusCreated, nil)
	for _, action := range []string{"email.send", "pay.card-now"} {
		w.rule(fmt.Sprintf(`{"count":{"by":["agent_id"],"action_type":%q,"window":"7d"},"gt":%d}`, action, fewIntents))
	}
	for name, condition := range map[string]string{
		"ext-9": `{"agent_id":"ext-9"}`, "ßtark/ς-9": `{"all":[{"field":"agent_id","op":"in","value":["ẞTARK/Σ-9","x"]}]}`,
		"glob-9": `{"agent_id":"GLOB-*"}`, "cel-9": `{"cel":"intent.agent_id == 'cel-9'"}`,
		"rego-9": `{"rego":"input.intent.agent_id == \"rego-9\""}`,
	} {
		w.rule(condition)
		w.ruled = append(w.ruled, []string{name, w.api.newAgent(w.t, name)})
	}
	slices.SortFunc(w.ruled, slices.Compare)
	w.waiting = w.api.newAgent(w.t, "waiting")
	w.heard()
}

func (w *names) rule(condition string) {
	w.t.Helper()
	rule := object{"name": condition, "condition": condition, "action": `{"decision":"deny","reason":"no"}`}
	w.api.do(w.t, http.MethodPost, "/v1/rules", rule, http.StatusCreated, nil)
}

// heard waits until every replica has all changes. A kill switch is answered only then, so heard
// uses one.
func (w *names) heard() {
	w.t.Helper()
	w.api.setStatus(w.t, w.waiting, "disabled")
}

// ask sends n intents at once, to the replicas in turn. It returns the number of allowed intents.
// All other answers must have this status and a reason that contains text.
func (w *names) ask(n int, agent, action func() string, status int, text string) (allowed int) {
	w.t.Helper()
	intents, answers := make([]intent, n), make([]answer, n)
	for i := range intents {
		intents[i] = newIntent(agent(), action(), "k8s/staging/web")
	}
	errs := make([]error, n)
	together(n, func(i int) { answers[i], errs[i] = w.c.settle(w.sender, i, intents[i], w.c.urls) })
	w.tried += n
	for i, got := range answers {
		switch {
		case errs[i] != nil:
			w.t.Errorf("%s: %v", intents[i].body, errs[i])
		case strings.Contains(got.body, `"decision":"allow"`):
			allowed++
		case got.status != status || !strings.Contains(got.body, text):
			w.t.Errorf("%s = %d %s, want %d and %q", intents[i].body, got.status, got.body, status, text)
		}
	}
	w.allowed += allowed
	return allowed
}

// refused calls ask and requires that no intent is allowed.
func (w *names) refused(n int, agent, action func() string, status int, text string) {
	w.t.Helper()
	if allowed := w.ask(n, agent, action, status, text); allowed > 0 {
		w.t.Errorf("WRONG ALLOW: %d of %d spellings of %q, %q, want %q for all", allowed, n, agent(), action(), text)
	}
}

// welcome calls ask and requires that all intents are allowed.
func (w *names) welcome(n int, agent, action func() string) {
	w.t.Helper()
	if allowed := w.ask(n, agent, action, http.StatusOK, ""); allowed != n {
		w.t.Errorf("%d of %d spellings of %q, %q are allowed, want all", allowed, n, agent(), action())
	}
}

func always(text string) func() string { return func() string { return text } }

// of returns spellings of an agent's names.
func (w *names) of(all ...string) func() string {
	return func() string { return w.name(w.one(all...)) }
}

// limit counts an agent under all its names. The agent is registered before the intents, meanwhile
// or never.
func (w *names) limit(base string) {
	l := &limited{names: []string{base}, actions: []string{"email.send"}}
	registered := w.IntN(3)
	for half := range 2 {
		if half == registered {
			l.names = append(l.names, w.api.newAgent(w.t, base))
			w.heard()
		}
		w.count(l, several(8))
	}
	w.limited = append(w.limited, l)
}

// limitOfATypeSpelled also uses other spellings of the action type that the counter counts.
func (w *names) limitOfATypeSpelled(base string) {
	l := &limited{names: []string{base}, actions: []string{"email.send"}, words: true}
	if w.IntN(2) == 0 {
		l.actions[0] = "pay.card-now"
	}
	w.count(l, several(16))
	w.limited = append(w.limited, l)
}

// count requests decisions for n spellings. In total only l's limit may be allowed. A single
// process must allow exactly the limit. Several processes may allow fewer, because each may keep
// unused places.
func (w *names) count(l *limited, n int) {
	w.t.Helper()
	action := always(l.actions[0])
	if l.words {
		action = func() string { return w.action(l.actions[0], true) }
	}
	l.allowed += w.ask(n, w.of(l.names...), action, http.StatusOK, "rule.deny")
	if l.allowed > fewIntents {
		w.t.Errorf("WRONG ALLOW: %d spellings of the agent %q are allowed to %s, want %d", l.allowed, l.names, l.actions, fewIntents)
	}
	if least := fewIntents; l.allowed < 1 || w.c.set == nil && l.allowed < least {
		w.t.Errorf("%d spellings of the agent %q are allowed to %s, want %d", l.allowed, l.names, l.actions, least)
	}
}

// killSwitch disables an agent. All spellings of its names must be refused, and other agents must
// be allowed.
func (w *names) killSwitch(base string) {
	names := []string{base, w.api.newAgent(w.t, base)}
	w.heard()
	w.welcome(2, w.of(names...), always("deploy"))
	w.api.setStatus(w.t, names[1], "disabled")
	w.refused(several(20), w.of(names...), always("deploy"), http.StatusOK, "agent.disabled:")
	w.welcome(1, w.of(base+"x"), always("deploy"))
	if w.IntN(2) == 0 {
		w.api.setStatus(w.t, names[1], "active")
		w.welcome(2, w.of(names...), always("deploy"))
	}
}

// deniedTypes uses other spellings of action types that the policy denies.
func (w *names) deniedTypes(base string) {
	spelled := func(types []string, words bool) func() string {
		return func() string { return w.action(w.one(types...), words) }
	}
	w.refused(several(10), w.of(base), spelled([]string{"db.drop_table"}, true), http.StatusOK, "action.denied:")
	w.refused(several(10), w.of(base), spelled([]string{"secrets.read", "secrets.all.list", "secrets."}, false), http.StatusOK, "action.denied:")
	w.refused(several(5), w.of(base), func() string { return w.name(w.one("db.drop_table", "secrets.read")) + "ｅ" }, http.StatusBadRequest, "intent.action_type")
	w.welcome(2, w.of(base), spelled([]string{"db.read_table", "secret.read"}, true))
}

// rulesOfAgents sends intents of agents whose external ids are in conditions of denying rules.
func (w *names) rulesOfAgents(base string) {
	w.refused(several(20), func() string { return w.of(w.ruled[w.IntN(len(w.ruled))]...)() }, always("deploy"), http.StatusOK, "rule.deny")
	w.welcome(2, w.of(base), always("deploy"))
}

// invisible adds invisible characters to names.
func (w *names) invisible(string) {
	w.refused(several(10), func() string { return w.hidden(w.one("bot-7", "waiting", "team-a/agent")) }, always("deploy"), http.StatusBadRequest, "intent.agent_id")
	w.refused(several(10), always("bot-7"), func() string { return w.hidden("db.drop_table") }, http.StatusBadRequest, "intent.action_type")
}

// restart restarts the first replica. An agent's used-up limit must still apply under the agent's
// other names.
func (w *names) restart() {
	w.t.Helper()
	w.c.replicas[0].stop(w.t)
	w.c.replicas[0] = w.c.launch(w.t)
	w.api = newClient(w.t, w.c.replicas[0].url, w.c.token)
	for i, l := range w.limited {
		if i%max(1, len(w.limited)/100) == 0 && !w.t.Failed() {
			w.count(l, 3)
		}
	}
}
