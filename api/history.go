package api

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
	"writ.example/writ/storage"
	"writ.example/writ/storage/ledger"
	"writ.example/writ/storage/receipt"
)

// listAuthorizations returns the history, newest first. A page of a filtered list may be short or
// empty. Only a null next_cursor ends the list.
func (s *Server) listAuthorizations(r *request) error {
	f := s.filter(r)
	page, err := r.onlyPage()
	if err != nil {
		return err
	}
	of, err := s.rows(r)
	if err != nil {
		return err
	}
	of.narrow(&f)
	var all []*storage.Record
	next, err := s.readRows(r, of, f, page, func(records []*storage.Record) (more int) {
		all = append(all, records...)
		return page.Limit - len(all)
	})
	if err != nil {
		return fmt.Errorf("listing authorizations: %w", err)
	}
	return list(r, all, next)
}

// readRows calls read with the rows that of has, from page on. read returns how many more it wants.
// readRows ends with the list, or once a request has read as much as it may, and returns the cursor of
// the rest.
func (s *Server) readRows(
	r *request, of *rowsOf, f storage.Filter, page storage.Page, read func([]*storage.Record) (more int),
) (next string, err error) {
	for range maxReads {
		records, next, err := s.store.ListRecords(r.ctx, r.who.org, f, page)
		if err != nil {
			return "", err
		}
		page.Limit = read(slices.DeleteFunc(records, func(row *storage.Record) bool { return !of.has(row) }))
		if page.After = next; next == "" || page.Limit == 0 || s.decisions.Now().Sub(r.now) > maxReading {
			break
		}
		r.slot.Yield()
	}
	return page.After, nil
}

// authorization returns one row of the history. A credential gets the row if it may read the whole
// history or has asked for the decision. For any other credential the refusal does not reveal
// whether the decision exists.
func (s *Server) authorization(r *request) error {
	explain := wantsExplanation(&r.query)
	if err := r.query.done(); err != nil {
		return err
	}
	record, err := s.store.Record(r.ctx, r.who.org, strings.ToLower(r.param))
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return fmt.Errorf("looking up a decision: %w", err)
	}
	if record == nil || record.Credential != r.who.credential() {
		if err := s.auth.permit(&r.who, scopeHistoryRead); err != nil {
			return err
		}
	}
	if err != nil {
		return about("decision", err)
	}
	if err := s.mayRead(r, record); err != nil {
		return err
	}
	if !explain {
		return r.ok(record)
	}
	return s.explain(r, record)
}

// filter reads the filters of the history from the query. An identity is searched in every form in
// which rows may store it: both the intent's text and the row's tag find the row.
func (s *Server) filter(r *request) (f storage.Filter) {
	q := &r.query
	if d, ok := q.take("decision"); ok {
		var err error
		if f.Decision, err = engine.ParseDecision(d); err != nil {
			q.refuse(invalid("decision", "must be allow, deny or approval_required"))
		}
	}
	f.AgentIDs = s.agentFilter(r)
	f.PolicyID = strings.ToLower(q.text("policy_id"))
	f.ActionTypes = s.identity(q, "action_type")
	f.IntentID, f.SessionID = strings.ToLower(q.text("intent_id")), strings.ToLower(q.text("session_id"))
	f.ApprovalID, f.RuleID = strings.ToLower(q.text("approval_id")), strings.ToLower(q.text("rule_id"))
	f.Code = q.text("code")
	if by := q.text("credential"); by != "" {
		f.Credential = ledger.KeptCredential(by, s.cfg.Scrub.Identity)
	}
	f.From, f.To = q.timestamp("from"), q.timestamp("to")
	if !f.From.IsZero() && !f.To.IsZero() && !f.From.Before(f.To) {
		q.refuse(invalid("to", "must be after from"))
	}
	return f
}

// agentFilter reads the filter agent_id from the query. Any name of an agent finds its rows, and so
// does the name in a row.
func (s *Server) agentFilter(r *request) []string {
	text := r.query.text("agent_id")
	if text == "" {
		return nil
	}
	spellings, err := s.agentSpellings(r, text)
	if err != nil {
		r.query.refuse(err)
	}
	return spellings
}

// agentSpellings returns all names that rows may have for the agent called name.
func (s *Server) agentSpellings(r *request, name string) ([]string, error) {
	if s.cfg.Scrub.Tagged(name) {
		return []string{name}, nil
	}
	_, names, err := s.decisions.Sets.Agent(r.ctx, &r.slot, r.who.org, name)
	if err != nil {
		return nil, fmt.Errorf("looking up the names of an agent: %w", err)
	}
	return s.cfg.Scrub.Spellings(names.Key()), nil
}

func (s *Server) identity(q *query, name string) []string {
	text := q.text(name)
	if text == "" {
		return nil
	}
	return s.cfg.Scrub.Spellings(text)
}

// actionBody is the body of POST /v1/actions/record.
type actionBody struct {
	DecisionID  string  `json:"decision_id"`
	Outcome     string  `json:"outcome"`
	AmountMinor *int64  `json:"amount_minor"`
	Currency    *string `json:"currency"`
	ExternalRef *string `json:"external_ref"`
}

// recordAction stores the settlement of a decision. A repeated settlement gets the same answer. A
// different settlement is refused.
func (s *Server) recordAction(r *request, in *actionBody) error {
	decisionID := strings.ToLower(in.DecisionID)
	if err := s.checkDecision(r, decisionID); err != nil {
		return err
	}
	settled, by := s.settlement(r, in), r.who.settler()
	r.slot.Leave() // from here on the handler only waits for the store
	record, first, err := s.decisions.Settle(r.ctx, r.who.org, decisionID, by, settled)
	if errors.Is(err, storage.ErrConflict) {
		return refuse(codeConflict, "The action of this decision was recorded before, with other details.")
	}
	if err != nil {
		return about("decision", err)
	}
	if first && record.Settlement.Unapproved {
		s.unapproved(record)
	}
	return r.ok(record)
}

// unapproved logs that an action was executed although it was not allowed. This log line is the
// only sign that an integration does not enforce decisions.
func (s *Server) unapproved(record *storage.Record) {
	s.metrics.unapproved.Inc()
	s.cfg.Log.Warn("an action was executed that had not been allowed",
		slog.String("organization", record.OrganizationID),
		slog.String("decision_id", record.DecisionID),
		slog.String("decision", record.Decision.String()))
}

// settlement returns the settlement to store. A secret in the external reference is replaced rather
// than refused, because every payment must be recorded.
func (s *Server) settlement(r *request, in *actionBody) storage.Settlement {
	st := storage.Settlement{Outcome: in.Outcome, AmountMinor: in.AmountMinor, RecordedAt: r.stamp()}
	set(&st.Currency, in.Currency)
	set(&st.ExternalRef, in.ExternalRef)
	st.ExternalRef = s.cfg.Scrub.Text(st.ExternalRef)
	return st
}

func checkAction(_ *request, in *actionBody) error {
	var bad fieldErrors
	bad.uuid("decision_id", in.DecisionID)
	if !storage.IsOutcome(in.Outcome) {
		bad.add("outcome", "must be executed, failed or skipped")
	}
	if n := in.AmountMinor; n != nil && (*n < 0 || *n > condition.MaxInteger) {
		bad.add("amount_minor", fmt.Sprintf("must be an integer from 0 to %d", condition.MaxInteger))
	}
	if in.Currency != nil && !condition.IsCurrency(*in.Currency) {
		bad.add("currency", "must be three upper-case letters (ISO 4217)")
	}
	if in.ExternalRef != nil {
		bad.optionalName("external_ref", *in.ExternalRef)
	}
	return bad.err()
}

// changeItem is one entry of the administrative audit log.
type changeItem struct {
	ledger.Change
	SignedAt time.Time         `json:"signed_at"` // about a second after the change at most
	Receipt  receipt.Inclusion `json:"receipt"`
}

// signedChange returns c, which e holds, with the time that its head states.
func signedChange(c ledger.Change, e *storage.Entry) (changeItem, error) {
	head, err := e.SignedHead(receipt.EntryLeaf(e.Body))
	if err != nil {
		return changeItem{}, fmt.Errorf("reading the head of a change: %w", err)
	}
	return changeItem{c, time.UnixMilli(head.UnixMilli).UTC(), e.Inclusion}, nil
}

// changeKinds are the kinds of changes that are listed.
var changeKinds = []string{
	"policy", "rule", "agent", "key", "list", "library", "session", "plan", "organization", "import",
}

// listChanges returns the changes of the organization's documents, newest first. It reads them from the chain.
// With a filter it reads pages until one has a match, or until a request has read as much as it may.
func (s *Server) listChanges(r *request) error {
	kind, hasKind := r.query.take("kind")
	if hasKind && !slices.Contains(changeKinds, kind) {
		r.query.refuse(invalid("kind", "must be one of %s", strings.Join(changeKinds, ", ")))
	}
	id := r.query.text("id")
	page, err := r.onlyPage()
	if err != nil {
		return err
	}
	var items []changeItem
	for range maxReads {
		entries, next, err := s.store.Entries(r.ctx, r.who.org, storage.ChangeEntry, page)
		if err != nil {
			return fmt.Errorf("listing changes: %w", err)
		}
		for _, e := range entries {
			c, err := ledger.ParseChange(e)
			if err != nil {
				return err
			}
			// The id of a policy's version is POLICY/VERSION.
			if (kind == "" || c.Kind == kind) && (id == "" || c.ID == id || strings.HasPrefix(c.ID, id+"/")) {
				item, err := signedChange(c, e)
				if err != nil {
					return err
				}
				items = append(items, item)
			}
		}
		page.After = next
		if next == "" || len(items) > 0 || s.decisions.Now().Sub(r.now) > maxReading {
			break
		}
		r.slot.Yield()
	}
	return list(r, items, page.After)
}
