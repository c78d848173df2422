package console

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// sessionRow is a session of an agent.
type sessionRow struct {
	ID        string    `json:"session_id"`
	PolicyID  string    `json:"policy_id"`
	AgentID   string    `json:"agent_id"`
	Actions   []string  `json:"allowed_action_types"`
	Resources []string  `json:"allowed_resource_patterns"`
	MaxCost   *int64    `json:"max_cost_minor"`
	Status    string    `json:"status"`
	CreatedAt time.Time `json:"created_at"`
	ExpiresAt time.Time `json:"expires_at"`
	ClosedAt  time.Time `json:"closed_at"`
}

func (v *visit) sessions() error {
	return v.listed("sessions", "Sessions", new(list[*sessionRow]), under("sessions"))
}

func (v *visit) askClose() error {
	id := v.r.PathValue("id")
	var s sessionRow
	if err := v.get(under("sessions", id), &s); err != nil {
		return err
	}
	return v.confirm("Sessions", confirm{
		Question: "Close the session of " + short(s.AgentID) + "?", Button: "Close", Stops: true,
		Text:   "Every decision that names this session is then a deny. It cannot be opened again.",
		Action: pageOf("sessions", id, "close"), Back: "/console/sessions",
	})
}

func (v *visit) closeSession() error {
	if err := v.form(); err != nil {
		return err
	}
	err := v.do(http.MethodPatch, under("sessions", v.r.PathValue("id")), map[string]string{"status": "closed"}, nil)
	if err := v.unsure("the session is closed on every replica", err); err != nil {
		return err
	}
	return v.to("/console/sessions")
}

// listRow is a list of values that rules look in.
type listRow struct {
	Name      string          `json:"name"`
	Version   int64           `json:"version"`
	Count     *int64          `json:"count"` // nil if the list is a document
	Values    []string        `json:"values"`
	Data      json.RawMessage `json:"data"`
	CreatedAt time.Time       `json:"created_at"`
	UpdatedAt time.Time       `json:"updated_at"`
}

// Document returns the document that a list is, or nothing.
func (l listRow) Document() string {
	const most = 64 << 10
	if len(l.Data) > most {
		return strings.ToValidUTF8(string(l.Data[:most]), "") + "…"
	}
	return string(l.Data)
}

func (v *visit) lists() error { return v.listed("lists", "Lists", new(list[*listRow]), under("lists")) }

// maxValues is the number of values of a list that a page shows.
const maxValues = 1000

func (v *visit) list() error {
	var body struct {
		It      listRow
		Left    int
		Changes changesOf
	}
	if err := v.get(under("lists", v.r.PathValue("name")), &body.It); err != nil {
		return err
	}
	if n := len(body.It.Values); n > maxValues {
		body.It.Values, body.Left = body.It.Values[:maxValues], n-maxValues
	}
	if err := body.Changes.read(v, "list", body.It.Name); err != nil {
		return err
	}
	return v.show("list", "List "+short(body.It.Name), "Lists", body)
}

// webhook is an address to which events are sent.
type webhook struct {
	ID        string    `json:"id"`
	URL       string    `json:"url"`
	Events    []string  `json:"events"`
	CreatedAt time.Time `json:"created_at"`
}

func (v *visit) webhooks() error {
	return v.listed("webhooks", "Webhooks", new(list[*webhook]), under("webhooks"))
}

// delivery is an event that is sent to a webhook.
type delivery struct {
	MessageID   string    `json:"message_id"`
	Type        string    `json:"type"`
	Subject     string    `json:"subject"`
	Status      string    `json:"status"`
	CreatedAt   time.Time `json:"created_at"`
	Attempts    int       `json:"attempts"`
	DueAt       time.Time `json:"due_at"`
	AttemptedAt time.Time `json:"attempted_at"`
	Answer      int       `json:"answer"`
	Problem     string    `json:"problem"`
}

func (v *visit) webhook() error {
	id := v.r.PathValue("id")
	var body struct {
		It           webhook
		Dead, Recent list[*delivery]
	}
	if err := v.get(under("webhooks", id), &body.It); err != nil {
		return err
	}
	if err := v.get(with(under("webhooks", id, "deliveries"), url.Values{"status": {"dead"}}), &body.Dead); err != nil {
		return err
	}
	if err := v.get(under("webhooks", id, "deliveries"), &body.Recent); err != nil {
		return err
	}
	return v.show("webhook", "Webhook "+short(body.It.URL), "Webhooks", body)
}

func (v *visit) replay() error {
	if err := v.form(); err != nil {
		return err
	}
	id := v.r.PathValue("id")
	message := map[string]string{"message_id": v.r.PostForm.Get("message_id")}
	if err := v.do(http.MethodPost, under("webhooks", id, "replay"), message, nil); err != nil {
		return err
	}
	return v.to(pageOf("webhooks", id))
}

func (v *visit) usage() error {
	var body struct {
		Meters part[meters]
		Plan   part[struct {
			Plan              string    `json:"plan"`
			Status            string    `json:"status"`
			CurrentPeriodEnd  time.Time `json:"current_period_end"`
			BillingConfigured bool      `json:"billing_configured"`
			Limits            struct {
				CSVExport bool `json:"csv_export"`
			} `json:"limits"`
		}]
	}
	if err := body.Meters.read(v, under("usage", "summary")); err != nil {
		return err
	}
	if err := body.Plan.read(v, under("billing", "subscription")); err != nil {
		return err
	}
	return v.show("usage", "Usage", "Usage", body)
}

// pay answers with a link to the payment provider. A form must not lead to another site, so it is a link.
func (v *visit) pay() error {
	if err := v.form(); err != nil {
		return err
	}
	var to struct {
		URL string `json:"url"`
	}
	plan := v.r.PostForm.Get("plan")
	var err error
	if plan == "" {
		err = v.do(http.MethodPost, under("billing", "portal"), nil, &to)
	} else {
		err = v.do(http.MethodPost, under("billing", "checkout"), map[string]string{"plan": plan}, &to)
	}
	if err != nil {
		return err
	}
	return v.show("pay", "Continue to the payment provider", "Usage", to.URL)
}

// export passes on the history as CSV.
func (v *visit) export() error {
	if v.r.Method == http.MethodHead {
		return nil
	}
	a, err := v.c.cfg.API.Do(v.r.Context(), Caller{v.who.Credential, v.r}, http.MethodGet,
		with(under("authorizations", "export"), asked(v.r.URL.Query())), nil)
	if err != nil {
		return err
	}
	if a.Status == http.StatusOK {
		return v.pass(a)
	}
	_, err = read(a, "GET the export", nil)
	return err
}

// changesOf are changes of one document, newest first.
type changesOf struct {
	part[list[change]]
	Older string // a query, which is empty where nothing older can be
}

// read reads the changes of a document. The query of the page says from where on.
func (c *changesOf) read(v *visit, kind, id string) error {
	q, at := url.Values{"kind": {kind}, "id": {id}, "limit": {"100"}}, v.r.URL.Query()
	if from := at.Get("changes"); from != "" {
		q.Set("cursor", from)
	}
	if err := c.part.read(v, with(under("changes"), q)); err != nil {
		return err
	}
	if more := c.It.More(); more != "" {
		at.Set("changes", more)
		c.Older = "?" + at.Encode()
	}
	return nil
}

// change is a change of a document.
type change struct {
	Kind     string    `json:"kind"`
	ID       string    `json:"id"`
	Revision int64     `json:"revision"`
	Digest   string    `json:"digest"`
	Actor    string    `json:"actor"`
	SignedAt time.Time `json:"signed_at"`
}

// Page returns the page of the document, or nothing if it has none.
func (c change) Page() string {
	lists := map[string]string{"agent": "agents", "rule": "rules", "list": "lists", "policy": "policies"}
	list, ok := lists[c.Kind]
	if !ok || c.Digest == "" {
		return ""
	}
	id, _, _ := strings.Cut(c.ID, "/")
	return pageOf(list, id)
}

// head is a signed head of a chain.
type head struct {
	Chain string `json:"chain"`
	Seq   int64  `json:"seq"`
	Size  int64  `json:"size"`
	Time  int64  `json:"time"`
	KID   string `json:"kid"`

	At  time.Time     `json:"-"`
	Age time.Duration `json:"-"`
}

func (v *visit) chain() error {
	var body struct {
		Heads part[list[*head]]
		Last  []*head // of each chain on the page
		Keys  struct {
			Keys []struct {
				KID string `json:"kid"`
			} `json:"keys"`
		}
		Changes part[list[change]]
		Older   string
	}
	if err := body.Heads.read(v, with(under("ledger", "heads"), url.Values{"limit": {"100"}})); err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, h := range body.Heads.It.Data {
		h.At = time.UnixMilli(h.Time)
		if h.Age = v.c.cfg.Now().Sub(h.At); !seen[h.Chain] {
			seen[h.Chain], body.Last = true, append(body.Last, h)
		}
	}
	if err := v.get("/.well-known/jwks.json", &body.Keys); err != nil {
		return err
	}
	q := url.Values{"limit": {"50"}}
	if at := v.r.URL.Query().Get("cursor"); at != "" {
		q.Set("cursor", at)
	}
	if err := body.Changes.read(v, with(under("changes"), q)); err != nil {
		return err
	}
	if more := body.Changes.It.More(); more != "" {
		body.Older = with("/console/chain", url.Values{"cursor": {more}})
	}
	return v.show("chain", "Chain", "Chain", body)
}
