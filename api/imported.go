package api

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/transfer"
)

// Imported validates the documents of another store as the endpoints validate the documents that
// they store.
type Imported struct {
	Scrub      Scrubber
	Conditions engine.Options

	// libraries are the libraries so far. compiled says that Conditions has all of them.
	libraries []engine.Library
	compiled  bool
}

// Validate is the Validate of a [transfer.CheckConfig]. It accepts a kind of document that no
// endpoint takes. It is called for one organization, with its libraries before its rules. Libraries
// are compiled together, so a mistake in one is an error of the document after them.
func (c *Imported) Validate(d storage.Document) (lists []string, err error) {
	r := &request{who: principal{org: d.Org}, body: d.Value, now: time.Now()}
	if d.Kind != storage.LibraryKind && len(c.libraries) > 0 && !c.compiled {
		c.compiled = true
		if c.Conditions.Libraries, err = engine.CompileStoredLibraries(c.libraries, c.Conditions); err != nil {
			return nil, &transfer.UnreadableError{Err: err}
		}
	}
	switch d.Kind {
	case storage.LibraryKind:
		err = c.library(r)
	case storage.PolicyKind:
		err = c.policy(r)
	case storage.RuleKind:
		return c.rule(r)
	case storage.ListKind:
		err = c.list(r)
	case storage.AgentKind:
		err = c.agent(r)
	case storage.TokenKind:
		err = c.token(r)
	case storage.RevisionKind:
		err = c.revision(r)
	}
	return lists, err
}

// revision validates the members of a revision's document. It decides nothing, so it is not compiled.
func (c *Imported) revision(r *request) error {
	var v storage.Revision
	if err := engine.Decode(r.body, "revision", &v); err != nil {
		return err
	}
	r.body = v.Value
	switch v.DocumentKind() {
	case storage.RuleKind:
		_, err := c.ruleMembers(r)
		return err
	case storage.ListKind:
		return c.list(r)
	case storage.LibraryKind:
		_, err := c.libraryMembers(r)
		return err
	}
	return nil
}

// policy validates a policy as POST /v1/policies/register does.
func (c *Imported) policy(r *request) error {
	in := &registerBody{Policy: new(engine.ActionPolicy)}
	if err := engine.Decode(r.body, "policy", in.Policy); err != nil {
		return err
	}
	return unreadable(checkRegister(r, in), c.secrets(in, ""))
}

// rule validates a rule as POST /v1/rules does. The members that have defaults there must be there:
// a store has no defaults.
func (c *Imported) rule(r *request) (lists []string, err error) {
	rule, secrets := c.ruleMembers(r)
	if rule == nil {
		return nil, secrets
	}
	compiled, err := compileRule(rule, c.Conditions)
	if compiled != nil {
		lists = compiled.Lists()
	}
	return lists, unreadable(err, secrets)
}

// ruleMembers returns a rule without compiling it. If it also returns an error, the rule has secrets.
func (c *Imported) ruleMembers(r *request) (*engine.Rule, error) {
	var in struct {
		ruleBody
		ID        string    `json:"id"`
		CreatedAt time.Time `json:"createdAt"`
		UpdatedAt time.Time `json:"updatedAt"`
	}
	if err := engine.Decode(r.body, "rule", &in); err != nil {
		return nil, err
	}
	var bad fieldErrors
	if in.Priority == nil {
		bad.add("rule.priority", "is required")
	}
	if in.IsActive == nil {
		bad.add("rule.isActive", "is required")
	}
	if err := bad.err(); err != nil {
		return nil, err
	}
	rule := in.apply(engine.Rule{ID: in.ID}, in.UpdatedAt)
	return &rule, c.secrets(in.ruleBody, "")
}

// list validates a list as PUT /v1/lists/{name} does.
func (c *Imported) list(r *request) error {
	var in struct {
		listBody
		Name      string    `json:"name"`
		Version   int64     `json:"version"`
		CreatedAt time.Time `json:"created_at"`
		UpdatedAt time.Time `json:"updated_at"`
	}
	if err := engine.Decode(r.body, "list", &in); err != nil {
		return err
	}
	if in.Version < 1 {
		return invalid("list.version", "want an integer from 1")
	}
	r.param = in.Name
	return merged(checkList(r, &in.listBody), c.secrets(in.listBody, in.Name))
}

// library validates a library as PUT /v1/libraries/{name} does, but does not compile it.
func (c *Imported) library(r *request) error {
	library, err := c.libraryMembers(r)
	if library != nil {
		c.libraries = append(c.libraries, *library)
	}
	return err
}

// libraryMembers is library, for a library that stands alone. It returns the library unless it cannot be
// decoded.
func (c *Imported) libraryMembers(r *request) (*engine.Library, error) {
	var in struct {
		libraryBody
		Name      string    `json:"name"`
		Version   int64     `json:"version"`
		CreatedAt time.Time `json:"created_at"`
		UpdatedAt time.Time `json:"updated_at"`
	}
	if err := engine.Decode(r.body, "library", &in); err != nil {
		return nil, err
	}
	if in.Version < 1 {
		return nil, invalid("library.version", "want an integer from 1")
	}
	r.param = in.Name
	return &engine.Library{Name: in.Name, Modules: in.Modules},
		merged(checkLibrary(r, &in.libraryBody), c.secrets(in.libraryBody, in.Name))
}

// agent validates an agent as POST /v1/agents and PATCH /v1/agents/{agentId}/status do.
func (c *Imported) agent(r *request) error {
	var in struct {
		agentBody
		statusBody
		ID        string    `json:"id"`
		CreatedAt time.Time `json:"createdAt"`
		UpdatedAt time.Time `json:"updatedAt"`
	}
	if err := engine.Decode(r.body, "agent", &in); err != nil {
		return err
	}
	return merged(checkNewAgent(r, &in.agentBody), checkStatus(r, &in.statusBody), c.secrets(in.agentBody, ""))
}

// token validates an API key as POST /v1/tokens does. A key may have expired.
func (c *Imported) token(r *request) error {
	var in struct {
		ID             string    `json:"id"`
		OrganizationID string    `json:"organization_id"`
		ParentID       string    `json:"parent_id"`
		Name           string    `json:"name"`
		Scopes         []string  `json:"scopes"`
		AgentID        *string   `json:"agent_id"`
		PolicyID       *string   `json:"policy_id"`
		Hash           [32]byte  `json:"hash"`
		Hint           string    `json:"hint"`
		CreatedAt      time.Time `json:"created_at"`
		ExpiresAt      time.Time `json:"expires_at"`
		RevokedAt      time.Time `json:"revoked_at"`
	}
	if err := engine.Decode(r.body, "key", &in); err != nil {
		return err
	}
	if len(in.Scopes) == 0 {
		return invalid("key.scopes", "is required: want one of %s", strings.Join(Scopes(), ", "))
	}
	body := tokenBody{Name: in.Name, Scopes: in.Scopes, AgentID: in.AgentID, PolicyID: in.PolicyID}
	return merged(checkNewToken(r, &body), c.secrets(body, ""))
}

// secrets refuses a body as the endpoints that store bodies do.
func (c *Imported) secrets(body any, name string) error {
	data, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("encoding a document: %w", err)
	}
	return refuseSecrets(c.Scrub, data, name)
}

// merged returns one error with all mistakes of errs.
func merged(errs ...error) error {
	var bad fieldErrors
	for _, err := range errs {
		bad.merge(err)
	}
	return bad.err()
}

// unreadable returns the error of a policy or a rule whose members exist.
func unreadable(errs ...error) error {
	err := merged(errs...)
	if fields := (*engine.InvalidError)(nil); errors.As(err, &fields) {
		return &transfer.UnreadableError{Err: err}
	}
	return err
}
