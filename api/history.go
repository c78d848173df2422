package api

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"

	"writ/engine"
	"writ/engine/condition"
	"writ/storage"
	"writ/storage/ledger"
	"writ/storage/receipt"
)

// listAuthorizations returns the history, newest first. A page of a filter that
// selects little may be short or empty: only a null next_cursor ends the list.
func (s *Server) listAuthorizations(r *request) (response, error) {
	f, err := s.filter(r.query)
	if err != nil {
		return response{}, err
	}
	page, err := r.onlyPage()
	if err != nil {
		return response{}, err
	}
	var all []*storage.Record
	for range maxReads {
		records, next, err := s.cfg.Store.ListRecords(r.ctx, r.who.org, f, page)
		if err != nil {
			return response{}, fmt.Errorf("listing authorizations: %w", err)
		}
		all = append(all, records...)
		page.Limit -= len(records)
		if page.After = next; next == "" || page.Limit == 0 {
			break
		}
		r.slot.Yield()
	}
	return list(all, page.After), nil
}

// authorization returns one row of the history to credentials that may read all of it and
// to the one that asked for the decision. Others get the same refusal whether or not the
// decision exists.
func (s *Server) authorization(r *request) (response, error) {
	explain, err := wantsExplanation(r.query)
	if err != nil {
		return response{}, err
	}
	if err := r.query.done(); err != nil {
		return response{}, err
	}
	record, err := s.cfg.Store.Record(r.ctx, r.who.org, strings.ToLower(r.param))
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return response{}, fmt.Errorf("looking up a decision: %w", err)
	}
	if record == nil || record.Credential != r.who.credential() {
		if err := s.auth.permit(&r.who, scopeHistoryRead); err != nil {
			return response{}, err
		}
	}
	if err != nil {
		return response{}, about("decision", err)
	}
	if !explain {
		return answerOK(record), nil
	}
	row, err := s.explain(r, record)
	return answerOK(row), err
}

// filter takes the filters of the history. An identity is searched for in every spelling
// that rows may have, so that a row is found by what its intent said and by what it shows.
func (s *Server) filter(q query) (f storage.Filter, err error) {
	if d, ok := q.take("decision"); ok {
		if f.Decision, err = engine.ParseDecision(d); err != nil {
			return f, invalid("decision", "must be allow, deny or approval_required")
		}
	}
	if f.AgentIDs, err = s.identity(q, "agent_id"); err != nil {
		return f, err
	}
	if f.PolicyID, err = q.text("policy_id"); err != nil {
		return f, err
	}
	f.PolicyID = strings.ToLower(f.PolicyID)
	if f.ActionTypes, err = s.identity(q, "action_type"); err != nil {
		return f, err
	}
	if f.From, err = q.timestamp("from"); err != nil {
		return f, err
	}
	if f.To, err = q.timestamp("to"); err != nil {
		return f, err
	}
	if !f.From.IsZero() && !f.To.IsZero() && !f.From.Before(f.To) {
		return f, invalid("to", "must be after from")
	}
	return f, nil
}

func (s *Server) identity(q query, name string) ([]string, error) {
	text, err := q.text(name)
	if err != nil || text == "" {
		return nil, err
	}
	return s.cfg.Scrub.Spellings(text), nil
}

// actionBody is the body of POST /v1/actions/record.
type actionBody struct {
	DecisionID  string  `json:"decision_id"`
	Outcome     string  `json:"outcome"`
	AmountMinor *int64  `json:"amount_minor"`
	Currency    *string `json:"currency"`
	ExternalRef *string `json:"external_ref"`
}

// recordAction adds the settlement of a decision. The same settlement again gives the same
// answer; a different one is refused.
func (s *Server) recordAction(r *request, in *actionBody) (response, error) {
	decisionID := strings.ToLower(in.DecisionID)
	if err := s.checkDecision(r, decisionID); err != nil {
		return response{}, err
	}
	settled := s.settlement(r, in)
	r.slot.Leave() // the rest is waiting
	record, first, err := s.decisions.Settle(r.ctx, r.who.org, decisionID, settled)
	if errors.Is(err, storage.ErrConflict) {
		return response{}, refuse(problem{
			Status: http.StatusConflict, Code: codeConflict,
			Detail: "The action of this decision was recorded before, with other details.",
		})
	}
	if err != nil {
		return response{}, about("decision", err)
	}
	if first && record.Settlement.Unapproved {
		s.unapproved(record)
	}
	return answerOK(record), nil
}

// unapproved logs that an action was executed without being allowed. Nothing else shows
// that an integration does not enforce decisions.
func (s *Server) unapproved(record *storage.Record) {
	s.metrics.unapproved.Inc()
	s.cfg.Log.Warn("an action was executed that had not been allowed",
		slog.String("organization", record.OrganizationID),
		slog.String("decision_id", record.DecisionID),
		slog.String("decision", record.Decision.String()))
}

// settlement returns in as it is stored. A secret in the reference is replaced
// rather than refused: that money moved must not go unrecorded.
func (s *Server) settlement(r *request, in *actionBody) storage.Settlement {
	st := storage.Settlement{Outcome: in.Outcome, AmountMinor: in.AmountMinor, RecordedAt: r.stamp()}
	set(&st.Currency, in.Currency)
	set(&st.ExternalRef, in.ExternalRef)
	st.ExternalRef = s.cfg.Scrub.Text(st.ExternalRef)
	return st
}

func (in *actionBody) validate() error {
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

// changeItem is one line of the administrative audit log.
type changeItem struct {
	ledger.Change
	Receipt receipt.Inclusion `json:"receipt"`
}

// listChanges returns the changes of the organization's documents that are in the
// chain, newest first.
func (s *Server) listChanges(r *request) (response, error) {
	page, err := r.onlyPage()
	if err != nil {
		return response{}, err
	}
	entries, next, err := s.cfg.Store.Entries(r.ctx, r.who.org, storage.ChangeEntry, page)
	if err != nil {
		return response{}, fmt.Errorf("listing changes: %w", err)
	}
	items := make([]changeItem, len(entries))
	for i, e := range entries {
		items[i].Receipt = e.Inclusion
		if items[i].Change, err = ledger.ParseChange(e); err != nil {
			return response{}, err
		}
	}
	return list(items, next), nil
}
