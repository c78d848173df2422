package console

import (
	"net/http"
)

func (c *Console) routes() {
	c.asset("console.css", "text/css; charset=utf-8")
	c.asset("console.js", "text/javascript; charset=utf-8")
	c.asset("icon.svg", "image/svg+xml")
	c.mux.HandleFunc("GET /console/login", c.askCredential)
	c.mux.HandleFunc("POST /console/login", c.enter)
	c.mux.HandleFunc("POST /console/logout", c.signOut)
	c.mux.Handle("GET /console/{$}", http.RedirectHandler(cookiePath, http.StatusSeeOther))

	c.get("/console", (*visit).overview)
	c.get("/console/stop", (*visit).askStop)
	c.post("/console/stop", (*visit).stop)
	c.get("/console/decisions", (*visit).decisions)
	c.get("/console/decisions/stream", (*visit).stream)
	c.get("/console/decisions/{id}", (*visit).decision)
	c.get("/console/approvals", (*visit).approvals)
	c.get("/console/approvals/{id}", (*visit).approval)
	c.post("/console/approvals/{id}", (*visit).judge)
	c.get("/console/agents", (*visit).agents)
	c.get("/console/agents/new", (*visit).newAgent)
	c.post("/console/agents", (*visit).register)
	c.get("/console/agents/{id}", (*visit).agent)
	for to := range statuses {
		c.get("/console/agents/{id}/"+to, func(v *visit) error { return v.askStatus(to) })
		c.post("/console/agents/{id}/"+to, func(v *visit) error { return v.setStatus(to) })
	}
	c.get("/console/policies", (*visit).policies)
	c.get("/console/policies/{id}", (*visit).policy)
	c.get("/console/rules", (*visit).rules)
	c.get("/console/rules/{id}", (*visit).rule)
	c.get("/console/keys", (*visit).keys)
	c.get("/console/keys/new", (*visit).newKey)
	c.post("/console/keys", (*visit).createKey)
	c.get("/console/keys/{id}", (*visit).key)
	c.get("/console/keys/{id}/revoke", (*visit).askRevoke)
	c.post("/console/keys/{id}/revoke", (*visit).revoke)
	c.get("/console/sessions", (*visit).sessions)
	c.get("/console/sessions/{id}/close", (*visit).askClose)
	c.post("/console/sessions/{id}/close", (*visit).closeSession)
	c.get("/console/lists", (*visit).lists)
	c.get("/console/lists/{name}", (*visit).list)
	c.get("/console/webhooks", (*visit).webhooks)
	c.get("/console/webhooks/{id}", (*visit).webhook)
	c.post("/console/webhooks/{id}/replay", (*visit).replay)
	c.get("/console/usage", (*visit).usage)
	c.get("/console/usage/decisions.csv", (*visit).export)
	c.post("/console/usage/pay", (*visit).pay)
	c.get("/console/chain", (*visit).chain)
	c.get("/console/", func(*visit) error {
		return &problem{Status: http.StatusNotFound, Code: "not_found", Detail: "There is no such page."}
	})
}
