package console

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

// row is a row of the history.
type row struct {
	DecisionID     string            `json:"decision_id"`
	IntentID       string            `json:"intent_id"`
	IntentDigest   string            `json:"intent_digest"`
	PolicyID       string            `json:"policy_id"`
	PolicyVersion  int64             `json:"policy_version"`
	PolicyRevision int64             `json:"policy_revision"`
	RulesRevision  int64             `json:"rules_revision"`
	AgentRevision  int64             `json:"agent_revision"`
	AgentID        string            `json:"agent_id"`
	ActionType     string            `json:"action_type"`
	Resource       string            `json:"resource"`
	Cost           *cost             `json:"cost"`
	MetadataKeys   []string          `json:"metadata_keys"`
	Metadata       map[string]string `json:"metadata"`
	Decision       string            `json:"decision"`
	Reasons        []string          `json:"reasons"`
	Findings       []finding         `json:"findings"`
	IssuedAt       string            `json:"issued_at"`
	DecidedAt      time.Time         `json:"decided_at"`
	Credential     string            `json:"credential"`
	SessionID      string            `json:"session_id"`
	ApprovalID     string            `json:"approval_id"`
	LeftOut        []string          `json:"left_out"`
	Settlement     *struct {
		Outcome     string    `json:"outcome"`
		AmountMinor *int64    `json:"amount_minor"`
		Currency    string    `json:"currency"`
		ExternalRef string    `json:"external_ref"`
		RecordedAt  time.Time `json:"recorded_at"`
		Unapproved  bool      `json:"unapproved"`
	} `json:"settlement"`
	Explanation *explanation `json:"explanation"`
	Unexplained string       `json:"unexplained"`
}

type finding struct {
	Code         string `json:"code"`
	Outcome      string `json:"outcome"`
	Decides      bool   `json:"decides"`
	RuleID       string `json:"rule_id"`
	RuleRevision int64  `json:"rule_revision"`
	Cause        string `json:"cause"`
	Field        string `json:"field"`
	Reason       string `json:"reason"`
}

// Why returns the reason that decided.
func (r *row) Why() string {
	i := max(0, slices.IndexFunc(r.Findings, func(f finding) bool { return f.Decides }))
	if i < len(r.Reasons) {
		return r.Reasons[i]
	}
	return ""
}

// list is a page of a list.
type list[T any] struct {
	Data []T     `json:"data"`
	Next *string `json:"next_cursor"`
}

// read decodes a page, which may be a plain array.
func (l *list[T]) read(text []byte) error {
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte("[")) {
		return json.Unmarshal(text, &l.Data)
	}
	return json.Unmarshal(text, l)
}

// More returns the cursor of the next page, or nothing.
func (l list[T]) More() string {
	if l.Next == nil {
		return ""
	}
	return *l.Next
}

// filter is a field of the form above the decisions.
type filter struct {
	Name, Label, Value string
	Hint               string // an example
}

// filters are the filters of GET /v1/authorizations. The decision has a field of its own.
var filters = []filter{
	{Name: "agent_id", Label: "Agent"}, {Name: "action_type", Label: "Action"},
	{Name: "code", Label: "Code", Hint: "cost.exceeded"}, {Name: "intent_id", Label: "Intent"},
	{Name: "policy_id", Label: "Policy"}, {Name: "rule_id", Label: "Rule"},
	{Name: "session_id", Label: "Session"}, {Name: "approval_id", Label: "Approval"},
	{Name: "credential", Label: "Credential"}, {Name: "from", Label: "From (UTC)", Hint: "2026-11-21 10:00"},
	{Name: "to", Label: "To (UTC)", Hint: "2026-11-22"},
}

// first is the number of filters that are always seen.
const first = 4

// noZone matches a time without its zone, which is then UTC.
var noZone = regexp.MustCompile(`^\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?)?$`)

func inUTC(s string) string {
	if !noZone.MatchString(s) {
		return s
	}
	s = strings.Replace(s, " ", "T", 1)
	switch len(s) {
	case len("2006-01-02"):
		s += "T00:00:00"
	case len("2006-01-02T15:04"):
		s += ":00"
	}
	return s + "Z"
}

// asked returns the filters of a page's address. An empty one is left out.
func asked(q url.Values) url.Values {
	out := url.Values{}
	for name, values := range q {
		value := strings.TrimSpace(values[0])
		if value == "" || name == "cursor" || name == "limit" {
			continue
		}
		if name == "from" || name == "to" {
			value = inUTC(value)
		}
		out.Set(name, value)
	}
	return out
}

// lastWith returns the path of the last decisions with a value.
func lastWith(name, value string) string {
	return with(under("authorizations"), url.Values{name: {value}, "limit": {"20"}})
}

func (v *visit) decisions() error {
	q := asked(v.r.URL.Query())
	body := struct {
		list[*row]
		Decision     string
		First, Other []filter
		Filtered     bool
		Open         bool   // whether one of the other filters is set
		Stream       string // the address of the live rows, on the first page
		Older        string
		Refused      string // why the filters were refused
		Lacks        string
	}{Decision: q.Get("decision"), Filtered: len(q) > 0}
	for i, f := range filters {
		f.Value = q.Get(f.Name)
		if i < first {
			body.First = append(body.First, f)
			continue
		}
		body.Other, body.Open = append(body.Other, f), body.Open || f.Value != ""
	}
	if body.Stream = with("/console/decisions/stream", q); v.r.URL.Query().Get("cursor") != "" {
		body.Stream = ""
	}
	of := url.Values{"limit": {"50"}}
	for name := range q {
		of.Set(name, q.Get(name))
	}
	if at := v.r.URL.Query().Get("cursor"); at != "" {
		of.Set("cursor", at)
	}
	err := v.get(with(under("authorizations"), of), &body.list)
	var p *problem
	if errors.As(err, &p) && p.Status == http.StatusBadRequest {
		body.Refused, body.Stream, err = p.Error(), "", nil
		for _, e := range p.Errors {
			body.Refused += " " + e.Field + " " + e.Message + "."
		}
	}
	if body.Lacks, err = lacks(err); err != nil {
		return err
	}
	if more := body.More(); more != "" {
		older := url.Values{"cursor": {more}}
		for name := range q {
			older.Set(name, q.Get(name))
		}
		body.Older = with("/console/decisions", older)
	}
	status := http.StatusOK
	if body.Refused != "" {
		status = http.StatusBadRequest
	}
	return v.answer(status, "decisions", "Decisions", "Decisions", body)
}

// stream passes on the events of the API's stream.
func (v *visit) stream() error {
	if v.r.Method == http.MethodHead {
		v.w.Header().Set("Content-Type", "text/event-stream")
		return nil
	}
	q := asked(v.r.URL.Query())
	a, err := v.c.cfg.API.Do(v.r.Context(), Caller{v.who.Credential, v.r}, http.MethodGet,
		with(under("authorizations", "stream"), q), nil)
	if err != nil {
		return err
	}
	return v.pass(a)
}

// pass sends an answer of the API as it is.
func (v *visit) pass(a *Answer) error {
	for _, name := range []string{"Content-Type", "Content-Disposition", "Retry-After", "X-Accel-Buffering"} {
		if value := a.Header.Get(name); value != "" {
			v.w.Header().Set(name, value)
		}
	}
	v.w.WriteHeader(a.Status)
	if p, ok := v.w.(Passer); ok {
		p.Pass(a.Body)
		return nil
	}
	defer a.Body.Close()
	out := http.NewResponseController(v.w)
	buf := make([]byte, 32<<10)
	for {
		n, err := a.Body.Read(buf)
		if _, gone := v.w.Write(buf[:n]); gone != nil || err != nil {
			return nil // the browser or the server is gone, and half an answer is sent
		}
		if err := out.Flush(); err != nil {
			return nil
		}
	}
}

// explanation is how a decision came about.
type explanation struct {
	Findings []struct {
		Code    string `json:"code"`
		Outcome string `json:"outcome"`
		Reason  string `json:"reason"`
		RuleID  string `json:"rule_id"`
		Decides bool   `json:"decides"`
	} `json:"findings"`
	Checks []check `json:"checks"`
	Rules  []struct {
		ID        string `json:"id"`
		Name      string `json:"name"`
		Priority  int64  `json:"priority"`
		Outcome   string `json:"outcome"`
		Result    string `json:"result"`
		Decides   bool   `json:"decides"`
		Condition string `json:"condition"`
		Error     string `json:"error"`
		Leaves    []struct {
			Text   string `json:"text"`
			Result string `json:"result"`
			Error  string `json:"error"`
		} `json:"leaves"`
	} `json:"rules"`
	RulesLeftOut int      `json:"rules_left_out"`
	Unknown      []string `json:"unknown"`
}

type check struct {
	Code    string   `json:"code"`
	Result  string   `json:"result"`
	Holds   string   `json:"holds"`
	Field   string   `json:"field"`
	Value   string   `json:"value"`
	Got     string   `json:"got"`
	Readers []string `json:"readers"`
}

// found is a finding with the two values it compared.
type found struct {
	finding
	Check *check
}

// findings returns the findings of a row with the values that led to them.
func (r *row) findings() []found {
	all := make([]found, len(r.Reasons))
	for i, reason := range r.Reasons {
		if len(r.Findings) == len(r.Reasons) {
			all[i].finding = r.Findings[i]
		} else {
			all[i].Code, _, _ = strings.Cut(reason, ":")
			all[i].Outcome, all[i].Decides = r.Decision, true
		}
		_, all[i].Reason, _ = strings.Cut(reason, ": ")
		if r.Explanation == nil || all[i].RuleID != "" {
			continue
		}
		for j, c := range r.Explanation.Checks {
			if c.Code == all[i].Code {
				all[i].Check = &r.Explanation.Checks[j]
			}
		}
	}
	return all
}

func (v *visit) decision() error {
	id := v.r.PathValue("id")
	var raw []byte
	if err := v.get(under("authorizations", id), &raw); err != nil {
		return err
	}
	body := struct {
		Row       *row
		Findings  []found
		JSON      string
		Unseen    string // why there is no explanation
		SuiteCase string
	}{Row: &row{}, JSON: string(raw)}
	if err := json.Unmarshal(raw, body.Row); err != nil {
		return err
	}
	explained := &row{}
	err := v.get(under("authorizations", id)+"?explain=true", explained)
	if body.Unseen, err = lacks(err); err != nil {
		return err
	}
	body.Row.Explanation = explained.Explanation
	if body.Unseen == "" {
		body.Unseen = explained.Unexplained
	}
	body.Findings, body.SuiteCase = body.Row.findings(), suiteCase(body.Row)
	return v.show("decision", words(body.Row.Decision)+": "+short(body.Row.ActionType), "Decisions", body)
}
