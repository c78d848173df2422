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
	c.get("/console/decisions", (*visit).decisions)
	c.get("/console/decisions/stream", (*visit).stream)
	c.get("/console/decisions/{id}", (*visit).decision)
	c.get("/console/", func(*visit) error {
		return &problem{Status: http.StatusNotFound, Code: "not_found", Detail: "There is no such page."}
	})
}
