package api

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"writ.example/writ/authoring/lint"
	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/registry"
)

// ruleBody is the body of POST and PATCH of rules. A nil pointer means that the body does not have
// the member.
type ruleBody struct {
	Name        *string `json:"name"`
	Description *string `json:"description"`
	Condition   *string `json:"condition"`
	Action      *string `json:"action"`
	Priority    *int64  `json:"priority"`
	IsActive    *bool   `json:"isActive"`
}

func (s *Server) createRule(r *request, in *ruleBody) error {
	plan, err := s.plan(r)
	if err != nil {
		return err
	}
	for {
		rule, compiled, uses, err := s.newRule(r, in)
		if err != nil {
			return err
		}
		r.slot.Pause() // the handler waits for the store
		switch err := s.docs.PutRule(r.ctx, r.who.org, rule, plan.Rules, uses); {
		case err == nil:
			r.slot.Resume()
			return r.created(warnedRule{rule, lint.Rule(compiled)})
		case !libraryMoved(err) || r.ctx.Err() != nil:
			return fmt.Errorf("storing a rule: %w", missingList(err))
		}
		r.slot.Resume()
	}
}

// newRule returns the rule that in describes, compiled too, and the lists and libraries that the rule
// uses. The error has all mistakes of in.
func (s *Server) newRule(r *request, in *ruleBody) (*engine.Rule, *engine.CompiledRule, registry.Uses, error) {
	var bad fieldErrors
	if in.IsActive != nil {
		bad.add("isActive", "cannot be given here: a new rule is active")
	}
	rule := in.apply(engine.Rule{
		ID: uuid.Must(uuid.NewV7()).String(), Priority: engine.DefaultPriority, CreatedAt: r.stamp(),
	}, r.stamp())
	rule.IsActive = true
	compiled, uses, err := s.checkRule(r, &rule)
	bad.merge(err)
	return &rule, compiled, uses, bad.err()
}

func (s *Server) checkNewRule(r *request, in *ruleBody) error {
	_, _, _, err := s.newRule(r, in)
	return err
}

// decodeChange reads the members of a change. An empty body changes nothing.
func (s *Server) decodeChange(r *request, in *ruleBody) error {
	if len(r.body) == 0 {
		return nil
	}
	return decoding(s.checkChange)(r, in)
}

// checkChange reports all mistakes in the members of a change. It does not look at the stored rule.
func (s *Server) checkChange(r *request, in *ruleBody) error {
	rule := in.apply(engine.Rule{Name: "any", Condition: "{}", Action: `{"decision":"deny"}`}, r.stamp())
	rule.IsActive = false // an inactive rule needs no room; updateRule checks the room of the changed rule
	_, _, err := s.checkRule(r, &rule)
	return err
}

// updateRule changes the members of a rule that the body has. A body without members changes
// nothing.
//
// The function given to UpdateRule may block every other write, including the kill switch, while it
// runs. UpdateRule may also call it more than once. Compiling takes too long for that, so the
// function only compares. If the change is not checked yet, the function aborts the update.
// updateRule then checks the change and tries again.
func (s *Server) updateRule(r *request, in *ruleBody) error {
	var checked engine.Rule
	var compiled *engine.CompiledRule // of checked
	var uses registry.Uses            // what checked uses
	for {
		var unchecked *engine.Rule
		var stored *engine.CompiledRule // nil if the rule was not compiled to be stored
		rule, err := s.docs.UpdateRule(r.ctx, r.who.org, r.param, func(old engine.Rule) (engine.Rule, error) {
			stored = nil
			if err := r.mayChange(old); err != nil {
				return old, err
			}
			if *in == (ruleBody{}) {
				return old, nil
			}
			changed := in.apply(old, r.stamp())
			if !changed.IsActive && in.Condition == nil && in.Action == nil {
				// A rule that an upgrade no longer compiles can still be switched off.
				return changed, changed.Validate()
			}
			if !equalExceptTimes(changed, checked) {
				unchecked = &changed
				return old, errRuleUnchecked
			}
			stored = compiled
			return changed, nil
		}, uses)
		switch {
		case err == nil:
			if stored == nil {
				return r.ok(s.warned(r, rule))
			}
			return r.ok(warnedRule{rule, lint.Rule(stored)})
		case libraryMoved(err) && r.ctx.Err() == nil:
			checked = engine.Rule{}
			continue
		case unchecked == nil || !errors.Is(err, errRuleUnchecked):
			return about("rule", missingList(err))
		case r.ctx.Err() != nil:
			return fmt.Errorf("changing a rule: %w", context.Cause(r.ctx))
		}
		if compiled, uses, err = s.checkRule(r, unchecked); err != nil {
			return err
		}
		checked = *unchecked
	}
}

// mayChange refuses to change a rule whose current state is not named by If-Match.
func (r *request) mayChange(rule engine.Rule) error {
	if r.matches(rule.UpdatedAt) {
		return nil
	}
	return refuse(codeRuleChanged, "The rule was changed at another time than If-Match says. Read it again.")
}

// matches reports whether If-Match allows a change of a document. updated is the time of the
// document's last change.
func (r *request) matches(updated time.Time) bool {
	return r.ifMatch == "" || r.ifMatch == "*" || r.ifMatch == entityTag(updated)
}

// entityTag returns the entity tag of a document: the time of its last change, as its JSON has it.
func entityTag(updated time.Time) string { return updated.Format(`"` + time.RFC3339Nano + `"`) }

func (s *Server) deleteRule(r *request) error {
	if err := s.docs.DeleteRule(r.ctx, r.who.org, r.param, r.mayChange); err != nil {
		return about("rule", err)
	}
	return r.answer(http.StatusNoContent, nil)
}

// listRules returns a plain array in evaluation order.
func (s *Server) listRules(r *request) error {
	warnings := r.query.warnings()
	page, err := r.onlyPage()
	if err != nil {
		return err
	}
	rules, _, err := s.docs.AllRules(r.ctx, r.who.org)
	if err != nil {
		return fmt.Errorf("listing rules: %w", err)
	}
	rules, next, err := pageOfRules(rules, page)
	if err != nil {
		return err
	}
	if warnings {
		return s.listWarned(r, rules, next)
	}
	return r.part(rules, next)
}

func (in *ruleBody) apply(old engine.Rule, now time.Time) engine.Rule {
	set(&old.Name, in.Name)
	set(&old.Description, in.Description)
	set(&old.Condition, in.Condition)
	set(&old.Action, in.Action)
	set(&old.Priority, in.Priority)
	set(&old.IsActive, in.IsActive)
	old.UpdatedAt = now
	return old
}

func set[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

// pageOfRules returns a page of rules, which are in evaluation order. The cursor is the position of
// the page's last rule in that order. It stays valid when rules are added or removed.
func pageOfRules(rules []engine.Rule, page storage.Page) ([]engine.Rule, string, error) {
	if page.After != "" {
		last, err := parseRuleCursor(page.After)
		if err != nil {
			return nil, "", err
		}
		from, found := slices.BinarySearchFunc(rules, last, registry.CompareRules)
		if found {
			from++
		}
		rules = rules[from:]
	}
	if len(rules) <= page.Limit {
		return rules, "", nil
	}
	rules = rules[:page.Limit]
	return rules, ruleCursor(rules[page.Limit-1]), nil
}

func ruleCursor(r engine.Rule) string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d %d %s", r.Priority, r.CreatedAt.UnixNano(), r.ID))
}

func parseRuleCursor(cursor string) (engine.Rule, error) {
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		return engine.Rule{}, storage.ErrBadCursor
	}
	fields := strings.SplitN(string(text), " ", 3)
	if len(fields) != 3 {
		return engine.Rule{}, storage.ErrBadCursor
	}
	priority, err1 := strconv.ParseInt(fields[0], 10, 64)
	created, err2 := strconv.ParseInt(fields[1], 10, 64)
	if err1 != nil || err2 != nil {
		return engine.Rule{}, storage.ErrBadCursor
	}
	return engine.Rule{ID: fields[2], Priority: priority, CreatedAt: time.Unix(0, created)}, nil
}

// errRuleUnchecked aborts the update of a rule that checkRule has not checked yet.
var errRuleUnchecked = errors.New("the rule is not checked")

// equalExceptTimes reports whether a and b are equal except for their times. checkRule does not look at times.
func equalExceptTimes(a, b engine.Rule) bool {
	a.CreatedAt, a.UpdatedAt = b.CreatedAt, b.UpdatedAt
	return a == b
}

// checkRule reports all mistakes of a rule in one error. It returns the compiled rule, and the lists and
// libraries that the rule uses.
func (s *Server) checkRule(r *request, rule *engine.Rule) (*engine.CompiledRule, registry.Uses, error) {
	o, err := s.conditions(r, rule)
	if err != nil {
		return nil, registry.Uses{}, err
	}
	compiled, err := compileRule(rule, o)
	if err != nil {
		return nil, registry.Uses{}, err
	}
	if rule.IsActive && compiled.Size() > smallRule {
		err = s.checkRulesSize(r, compiled)
	}
	return compiled, usesOf(compiled, o.Libraries), err
}

// conditions returns the options to compile a rule of the caller's organization.
func (s *Server) conditions(r *request, rule *engine.Rule) (engine.Options, error) {
	o, err := s.decisions.ConditionsFor(r.ctx, &r.slot, r.who.org, rule.Condition)
	if err != nil {
		return o, fmt.Errorf("loading the libraries: %w", err)
	}
	return o, nil
}

// compileRule compiles r. The error has all mistakes of r.
func compileRule(r *engine.Rule, o engine.Options) (compiled *engine.CompiledRule, err error) {
	var bad fieldErrors
	bad.merge(r.Validate())
	if r.Condition != "" && r.Action != "" {
		compiled, err = engine.CompileRule(*r, o)
		bad.merge(err)
	}
	return compiled, bad.err()
}

// smallRule is the size in bytes up to which a rule is accepted without adding up the sizes of the
// other rules. Adding up many sizes is slow.
const smallRule = 4 << 10

// checkRulesSize refuses a rule that would make the rules of its organization too large.
func (s *Server) checkRulesSize(r *request, rule *engine.CompiledRule) error {
	rules, err := s.decisions.Sets.Rules(r.ctx, &r.slot, r.who.org)
	if err != nil {
		return fmt.Errorf("adding up the rules: %w", err)
	}
	size := rule.Size()
	if libraries := rules.Libraries(); libraries != nil {
		size += libraries.Size()
	}
	for _, other := range rules.Rules() {
		if other.Rule().ID != rule.Rule().ID {
			size += other.Size()
		}
	}
	if room := s.decisions.Sets.RulesRoom(); size > room {
		return invalid("condition", "takes the active rules of the organization over %v MiB once they are compiled: "+
			"write them shorter, or fewer of them in Rego", float64(room)/(1<<20))
	}
	return nil
}
