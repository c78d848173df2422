package api

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
)

// registerBody is the body of POST /v1/policies/register.
type registerBody struct {
	Policy *engine.ActionPolicy `json:"policy"`
}

func decodeRegister(r *request, in *registerBody) error {
	return policyEnvelope().hint(engine.Decode(r.body, "", in, func() error { return checkRegister(r, in) }))
}

// checkRegister refuses a policy that does not compile or belongs to another organization.
func checkRegister(r *request, in *registerBody) error {
	p := in.Policy
	if p == nil {
		return invalid("policy", "is required")
	}
	p.Normalize()
	var bad fieldErrors
	_, err := engine.CompilePolicy(p)
	bad.merge(err)
	if p.OrganizationID != "" && p.OrganizationID != r.who.org {
		bad.add("policy.organization_id", fmt.Sprintf("must be %q, the organization of your credential", r.who.org))
	}
	return bad.err()
}

// registered is the answer to a registration. It has the stored version and tells whether that
// version is new. It also warns of patterns that match next to nothing.
type registered struct {
	Created bool `json:"created"`
	*engine.ActionPolicy
	Warnings []engine.FieldError `json:"warnings,omitzero"`
}

// listPolicies returns the policies. For a bound key a page may be short.
func (s *Server) listPolicies(r *request) error {
	found, next, err := pageOf(r, "policies", s.docs.ListPolicies)
	if err != nil {
		return err
	}
	found = slices.DeleteFunc(found, func(p *engine.ActionPolicy) bool { return !r.who.governs(p) })
	return list(r, found, next)
}

// policyVersions returns the versions of one policy, newest first. A version never changes, so the
// newest version of a page is the page's entity tag. For a bound key a page may be short.
func (s *Server) policyVersions(r *request) error {
	page, err := r.onlyPage()
	if err != nil {
		return err
	}
	id := strings.ToLower(r.param)
	found, next, err := s.docs.PolicyVersions(r.ctx, r.who.org, id, page)
	if err != nil {
		return about("policy", err)
	}
	r.res.etag = strconv.Quote(strconv.FormatInt(found[0].Version, 10))
	found = slices.DeleteFunc(found, func(p *engine.ActionPolicy) bool { return !r.who.governs(p) })
	if len(found) == 0 && page.After == "" && next == "" {
		return s.auth.notBound(&r.who)
	}
	return list(r, found, next)
}

// registerPolicy stores a version of a policy. It compiles the policy first, so that every stored policy can be
// evaluated.
func (s *Server) registerPolicy(r *request, in *registerBody) error {
	if err := checkRegister(r, in); err != nil {
		return err
	}
	p := in.Policy
	plan, err := s.plan(r)
	if err != nil {
		return err
	}
	r.slot.Leave() // from here on the handler only waits for the store
	created, err := s.docs.PutPolicy(r.ctx, p, plan.Policies)
	if errors.Is(err, storage.ErrConflict) {
		return s.versionConflict(r, p)
	}
	if err != nil {
		return fmt.Errorf("storing a policy: %w", err)
	}
	// The first decision finds the policy compiled, as the check of the body has compiled it. A decision that needs
	// the policy reports an error of its load.
	_, _ = s.decisions.Sets.Policy(r.ctx, nil, r.who.org, p.PolicyID)
	return r.created(registered{created, p, p.Warnings()})
}

// versionConflict returns the error for a version of p that is not greater than the newest version.
// The error says which versions are free.
func (s *Server) versionConflict(r *request, p *engine.ActionPolicy) error {
	newest, err := s.docs.Policy(r.ctx, r.who.org, p.PolicyID)
	if err != nil {
		return fmt.Errorf("reading the newest version: %w", err)
	}
	if newest.Version == p.Version {
		return invalid("policy.version", "version %d is stored with a different content: must be greater than %d",
			p.Version, newest.Version)
	}
	return invalid("policy.version", "must be greater than %d", newest.Version)
}

// envelope is the member of a body that holds a document. A client may wrongly send the document
// without this member. The first error is then an unknown field, and hint tells where that field
// belongs.
type envelope struct {
	name    string
	members []string // the document's members, without those that the body also has
}

func policyEnvelope() envelope {
	return envelope{"policy", engine.MemberNames(reflect.TypeFor[engine.ActionPolicy]())}
}

// intentEnvelope returns the envelope of an intent. It leaves out policy_id, because the body of an
// evaluation also has a policy_id.
func intentEnvelope() envelope {
	members := engine.MemberNames(reflect.TypeFor[engine.Intent]())
	return envelope{"intent", slices.DeleteFunc(members, func(name string) bool { return name == "policy_id" })}
}

// hint improves an error of decoding a body. For each unknown field that belongs to the document,
// it says that the field belongs inside the envelope.
func (e envelope) hint(err error) error {
	var fields *engine.InvalidError
	if !errors.As(err, &fields) {
		return err
	}
	var told fieldErrors
	for _, f := range fields.Fields {
		if slices.Contains(e.members, f.Field) {
			f.Message = fmt.Sprintf("belongs inside %q: send {%q: {%q: …, …}}", e.name, e.name, f.Field)
		}
		told.add(f.Field, f.Message)
	}
	return told.err()
}
