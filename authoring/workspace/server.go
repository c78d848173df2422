package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"writ.example/writ/authoring/document"
	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
)

// Request is a request to a server.
type Request struct {
	Method, Path string
	Body         any // sent as JSON unless it is nil
	// IfMatch and IfNoneMatch are the values of the headers of these names. An empty value means
	// no header.
	IfMatch, IfNoneMatch string
	Want                 int // the status that the answer must have
}

// Call sends a request. The answer must have the wanted status. Call decodes the answer into v,
// unless v is nil. It returns the answer's headers.
type Call func(ctx context.Context, r Request, v any) (http.Header, error)

// Server is a snapshot of an organization's documents on a server.
type Server struct {
	policies []*engine.ActionPolicy // every version, the newest first within a policy
	rules    []engine.Rule          // in the order of evaluation
	lists    []engine.List          // sorted by name
	// libraries is sorted by name.
	libraries []engine.Library
}

// pageSize is the largest page that the API allows, in items.
const pageSize = 500

// Fetch reads the policies, rules, lists and libraries of the organization that the credential belongs to.
func Fetch(ctx context.Context, call Call) (*Server, error) {
	var last *Server
	for range document.MaxPasses {
		s := new(Server)
		err := Pages(ctx, call, "/v1/policies", func(page Page[*engine.ActionPolicy]) error {
			if slices.Contains(page.Data, nil) {
				return errors.New("the server lists null as a policy")
			}
			s.policies = append(s.policies, page.Data...)
			return nil
		})
		if err != nil {
			return nil, err
		}
		err = Pages(ctx, call, "/v1/rules", func(page []engine.Rule) error {
			s.rules = append(s.rules, page...)
			return nil
		})
		if err == nil {
			err = s.fetchLists(ctx, call)
		}
		if err == nil {
			err = s.fetchLibraries(ctx, call)
		}
		if err != nil || len(s.rules) < pageSize || last != nil && s.Equal(last) {
			return s, cmp.Or(err, s.checkNames())
		}
		last = s
	}
	return nil, errors.New("the server's rules change while they are read: try again")
}

// fetchLists reads the lists with their values.
func (s *Server) fetchLists(ctx context.Context, call Call) error {
	type summary struct {
		Name string `json:"name"`
	}
	err := Pages(ctx, call, listsPath, func(page Page[summary]) error {
		for _, l := range page.Data {
			s.lists = append(s.lists, engine.List{Name: l.Name})
		}
		return nil
	})
	for i := 0; i < len(s.lists) && err == nil; i++ {
		name := s.lists[i].Name
		_, err = call(ctx, Request{Method: http.MethodGet, Path: listPath(name), Want: http.StatusOK}, &s.lists[i])
		if got := s.lists[i].Name; err == nil && got != name {
			err = fmt.Errorf("the server answers with the list %.80q to a request for %.80q", got, name)
		}
	}
	return err
}

// checkNames returns an error if an id or a name is not well-formed. A pull makes file names from
// ids and names, and a plan shows them on a terminal.
func (s *Server) checkNames() error {
	versions, names := make(map[string]bool), make(map[string]bool)
	for _, p := range s.policies {
		version := fmt.Sprint(p.PolicyID, p.Version)
		switch {
		case !condition.IsUUID(p.PolicyID):
			return fmt.Errorf("the server has a policy with the policy_id %.80q: want a UUID in lower case", p.PolicyID)
		case versions[version]:
			return fmt.Errorf("the server lists version %d of policy %s twice", p.Version, p.PolicyID)
		}
		versions[version] = true
	}
	for i := range s.rules {
		switch id := s.rules[i].ID; {
		case !condition.IsUUID(id):
			return fmt.Errorf("the server has a rule with the id %.80q: want a UUID in lower case", id)
		case names[id]:
			return fmt.Errorf("the server lists rule %s twice", id)
		default:
			names[id] = true
		}
	}
	for _, l := range s.lists {
		switch err := condition.CheckListName(l.Name); {
		case err != nil:
			return fmt.Errorf("the server has a list with the name %.80q: %w", l.Name, err)
		case names[l.Name]:
			return fmt.Errorf("the server lists list %s twice", l.Name)
		}
		names[l.Name] = true
	}
	return s.checkLibraries()
}

// listsPath is the path of the lists in the API.
const listsPath = "/v1/lists"

func listPath(name string) string { return listsPath + "/" + url.PathEscape(name) }

// list returns the list called name, or nil.
func (s *Server) list(name string) *engine.List {
	i := slices.IndexFunc(s.lists, func(l engine.List) bool { return l.Name == name })
	if i < 0 {
		return nil
	}
	return &s.lists[i]
}

// nextPage matches the link to the next page (RFC 8288). Its group is the cursor.
var nextPage = regexp.MustCompile(`<[^>]*[?&]cursor=([^&>]+)[^>]*>; rel="next"`)

// Page is the body of a page of a list.
type Page[T any] struct {
	Data []T `json:"data"`
}

// Pages calls f with the body of each page of a list. The path may have a query. Pages stops if f returns an
// error.
func Pages[T any](ctx context.Context, call Call, path string, f func(T) error) error {
	path, filter, _ := strings.Cut(path, "?")
	q, err := url.ParseQuery(filter)
	if err != nil {
		return fmt.Errorf("the query of %s: %w", path, err)
	}
	if !q.Has("limit") {
		q.Set("limit", strconv.Itoa(pageSize))
	}
	for cursor := ""; ; {
		if cursor != "" {
			q.Set("cursor", cursor)
		}
		var page T
		header, err := call(ctx, Request{Method: http.MethodGet, Path: path + "?" + q.Encode(), Want: http.StatusOK},
			&page)
		if err != nil {
			return err
		}
		if err := f(page); err != nil {
			return err
		}
		m := nextPage.FindStringSubmatch(header.Get("Link"))
		if m == nil {
			return nil
		}
		next, err := url.QueryUnescape(m[1])
		if err != nil || next == cursor {
			return fmt.Errorf("the server's list of %s does not end", path)
		}
		cursor = next
	}
}

// Rules returns the rules in the order of evaluation.
func (s *Server) Rules() []engine.Rule { return s.rules }

// Newest returns the newest version of each policy.
func (s *Server) Newest() (all []*engine.ActionPolicy) {
	for i, p := range s.policies {
		if i == 0 || s.policies[i-1].PolicyID != p.PolicyID {
			all = append(all, p)
		}
	}
	return all
}

// policy returns the given version of a policy, or nil.
func (s *Server) policy(id string, version int64) *engine.ActionPolicy {
	i := slices.IndexFunc(s.policies, func(p *engine.ActionPolicy) bool {
		return p.PolicyID == id && p.Version == version
	})
	if i < 0 {
		return nil
	}
	return s.policies[i]
}

// Equal reports whether s and t have the same documents.
func (s *Server) Equal(t *Server) bool { return reflect.DeepEqual(s, t) }

// policyValue returns the members of a policy that are compared. An empty list in a member equals
// a missing list.
func policyValue(p *engine.ActionPolicy) jsontext.Value {
	c := *p
	c.Version, c.PolicyID = 0, ""
	for _, list := range []*[]string{&c.DeniedActionTypes, &c.AllowedResourcePatterns, &c.BlockedResourcePatterns} {
		if len(*list) == 0 {
			*list = nil
		}
	}
	return without(encode(&c), "version", "policy_id", "updated_at")
}

// ruleValue returns the members of a rule that are compared. Its condition and its action are JSON.
func ruleValue(r *engine.Rule) jsontext.Value {
	c := *r
	c.ID = ""
	docs, err := document.Parse("rule.json", encode(&c))
	if err != nil || docs[0].Kind != document.Rule {
		return without(encode(&c), "id", "createdAt", "updatedAt")
	}
	return without(docs[0].Canonical(), "id", "createdAt", "updatedAt")
}

// listValue returns the members of a list that are compared. Its values or its document are in
// the form that the server stores.
func listValue(l *engine.List) jsontext.Value {
	c := engine.List{Values: slices.Clone(l.Values), Data: l.Data.Clone()}
	c.Normalize()
	return encode(listContent(&c))
}

// listContent returns what the body of a PUT of a list has.
func listContent(l *engine.List) map[string]any {
	if l.Data != nil {
		return map[string]any{"data": l.Data}
	}
	return map[string]any{"values": l.Values}
}

// encode returns v as JSON. It panics on an error, because every document has a JSON form.
func encode(v any) jsontext.Value {
	data, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		panic(err)
	}
	return data
}
