package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pb33f/libopenapi"
	validator "github.com/pb33f/libopenapi-validator"
	"github.com/pb33f/libopenapi-validator/config"
	oaserrors "github.com/pb33f/libopenapi-validator/errors"
	v3 "github.com/pb33f/libopenapi/datamodel/high/v3"
)

// contract has openapi.yaml and validators that compare an exchange with openapi.yaml.
type contract struct {
	model *v3.Document
	// responses also refuses members that the document does not declare. The document alone would
	// allow such members.
	requests, responses validator.Validator
	// mu is held while validating, because rendering a schema writes to the model.
	mu sync.Mutex
}

// loadContract reads openapi.yaml once for all tests.
var loadContract = sync.OnceValues(func() (*contract, error) { return newContract(descriptionYAML) })

// newContract reads an OpenAPI document. options configure both validators.
func newContract(text []byte, options ...config.Option) (*contract, error) {
	doc, err := libopenapi.NewDocument(text)
	if err != nil {
		return nil, err
	}
	model, err := doc.BuildV3Model()
	if err != nil {
		return nil, err
	}
	c := &contract{model: &model.Model}
	options = append(options, config.WithFormatAssertions())
	c.requests = validator.NewValidatorFromV3Model(c.model, options...)
	c.responses = validator.NewValidatorFromV3Model(c.model, append(options, config.WithStrictMode(),
		config.WithStrictIgnoredHeadersExtra("x-content-type-options", "x-frame-options", "referrer-policy", "cache-control",
			"content-security-policy", "cross-origin-resource-policy", "strict-transport-security"),
		// These paths contain maps with arbitrary keys, the JSON Schemas, the types of Rego's functions,
		// and the OpenAPI document itself.
		config.WithStrictIgnorePaths("$.body.paid.by_plan.*", "$.body.metadata**", "$.body.data.*", "$.body.data[*].metadata.*", "$.body.data[*].counts**",
			"$.body.properties", "$.body.properties.**", "$.body.$defs", "$.body.$defs.**", "$.body.items", "$.body.items.**",
			"$.body.additionalProperties", "$.body.required", "$.body.oneOf", "$.body.oneOf**", "$.body.builtins[*].decl.**",
			"$.body.openapi", "$.body.info", "$.body.servers", "$.body.security", "$.body.tags",
			"$.body.paths", "$.body.paths.**", "$.body.components", "$.body.components.**", "$.body.info.**"))...)
	return c, nil
}

func mustContract(t testing.TB) *contract {
	t.Helper()
	c, err := loadContract()
	must(t, err)
	return c
}

// operation returns the document's operation for req, or nil. A HEAD uses the operation of GET.
func (c *contract) operation(req *http.Request) *v3.Operation {
	for path, item := range c.model.Paths.PathItems.FromOldest() {
		if !matchesTemplate(path, req.URL.EscapedPath()) {
			continue
		}
		return item.GetOperations().GetOrZero(strings.ToLower(req.Method))
	}
	return nil
}

func matchesTemplate(template, path string) bool {
	want, got := strings.Split(template, "/"), strings.Split(path, "/")
	return slices.EqualFunc(want, got, func(w, g string) bool {
		return w == g || strings.HasPrefix(w, "{") && g != ""
	})
}

// violations compares one exchange with the document and returns the differences. It checks every
// response. It checks a request only if the server accepted the request.
func (c *contract) violations(req *http.Request, sent []byte, r *reply) string {
	op := c.operation(req)
	if op == nil {
		return "" // the path or method is unknown; TestContract_RoutesAndDocumentAgree keeps it out of the document
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var found string
	again := req.Clone(req.Context())
	if r.status < 300 {
		again.Body = io.NopCloser(bytes.NewReader(sent))
		if ok, errs := c.requests.ValidateHttpRequestSync(again); !ok {
			found = fmt.Sprintf("\nit was accepted, but sent %s%s", sent, explain(errs))
		}
	}
	res := &http.Response{StatusCode: r.status, Header: r.header, Body: io.NopCloser(bytes.NewReader(r.body)), Request: req}
	if ok, errs := c.responses.ValidateHttpResponse(again, res); !ok {
		found += fmt.Sprintf("\nit was answered with %s%s", r.body, explain(errs))
	}
	if r.header.Get("Content-Type") == typeProblem {
		found += refusal(op, r.status, r.body)
	}
	return found
}

// refusal returns how a problem differs from its response in the document: its status is the response's
// and its code is in x-problem-codes. Generators of clients cannot read this as a schema.
func refusal(op *v3.Operation, status int, body []byte) string {
	var p struct {
		Status int
		Code   string
	}
	if err := json.Unmarshal(body, &p); err != nil {
		return "\n" + err.Error()
	}
	codes := problemCodes(op.Responses.Codes.GetOrZero(strconv.Itoa(status)))
	if p.Status == status && slices.Contains(codes, p.Code) {
		return ""
	}
	return fmt.Sprintf("\na %d is the problem %d %q, want %d and a code of %q", status, p.Status, p.Code, status, codes)
}

// problemCodes returns the codes of the problems that a response can be.
func problemCodes(r *v3.Response) (codes []string) {
	if r == nil || r.Extensions == nil {
		return nil
	}
	if list := r.Extensions.GetOrZero("x-problem-codes"); list != nil {
		for _, code := range list.Content {
			codes = append(codes, code.Value)
		}
	}
	return codes
}

// TestContract_ProblemsListTheirCodes checks that a response that is a problem has x-problem-codes, and
// that its example is one of them.
func TestContract_ProblemsListTheirCodes(t *testing.T) {
	for path, item := range mustContract(t).model.Paths.PathItems.FromOldest() {
		for method, op := range item.GetOperations().FromOldest() {
			for status, response := range op.Responses.Codes.FromOldest() {
				if response.Content == nil || response.Content.GetOrZero(typeProblem) == nil {
					continue
				}
				media := response.Content.GetOrZero(typeProblem)
				where := method + " " + path + " " + status
				n, err := strconv.Atoi(status)
				must(t, err)
				for name, example := range examplesOf(t, media) {
					text, err := json.Marshal(example)
					must(t, err)
					if wrong := refusal(op, n, text); wrong != "" {
						t.Errorf("%s: example %s: %s", where, name, wrong)
					}
				}
				if !strings.HasSuffix(media.Schema.GetReference(), "/Problem") {
					t.Errorf("%s is %q, want the schema Problem as it is: generators cannot merge it", where, media.Schema.GetReference())
				}
			}
		}
	}
}

func explain(errs []*oaserrors.ValidationError) string {
	var b strings.Builder
	for _, e := range errs {
		fmt.Fprintf(&b, "\n- %s: %s", e.Message, e.Reason)
		for _, s := range e.SchemaValidationErrors {
			fmt.Fprintf(&b, "\n    %s at %s: %s", s.FieldPath, s.KeywordLocation, s.Reason)
		}
	}
	return b.String()
}

func TestContract_DocumentIsOpenAPI31(t *testing.T) {
	doc, err := libopenapi.NewDocument(descriptionYAML)
	must(t, err)
	v, errs := validator.NewValidator(doc)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	if ok, errs := v.ValidateDocument(); !ok {
		t.Errorf("openapi.yaml is not a valid document: %s", explain(errs))
	}
	c := mustContract(t)
	if got := [2]string{c.model.Version, c.model.Info.Version}; got != [2]string{"3.1.0", "0.3.0"} {
		t.Errorf("versions = %q, want OpenAPI 3.1.0, interface 0.3.0", got)
	}
}

// TestContract_RoutesAndDocumentAgree checks that the document describes exactly the served routes.
// A route and its operation must require the same credential and scope.
func TestContract_RoutesAndDocumentAgree(t *testing.T) {
	h := start(t)
	served := make(map[string]string)
	for _, rt := range h.server.routes() {
		path := rt.path
		if rt.param != "" {
			path = strings.Replace(path, ":"+rt.param, "{"+rt.param+"}", 1)
		}
		need := strings.TrimSpace("bearer " + rt.scope.String())
		switch {
		case rt.is(signed):
			need = "stripeSignature"
		case rt.scope == public:
			need = "public"
		case rt.scope == service:
			need = "service"
		}
		served[rt.method+" "+path] = need
	}
	described := make(map[string]string)
	c := mustContract(t)
	for path, item := range c.model.Paths.PathItems.FromOldest() {
		for method, op := range item.GetOperations().FromOldest() {
			described[strings.ToUpper(method)+" "+path] = c.security(t, op)
		}
	}
	if diff := cmp.Diff(served, described); diff != "" {
		t.Errorf("routes() and openapi.yaml differ (-served +described):\n%s", diff)
	}
}

// security returns the security requirement of an operation as one line.
func (c *contract) security(t *testing.T, op *v3.Operation) string {
	if op.Security == nil {
		t.Errorf("%s says nothing of security", op.OperationId)
		return ""
	}
	var all []string
	for _, need := range op.Security {
		for scheme, scopes := range need.Requirements.FromOldest() {
			if c.model.Components.SecuritySchemes.GetOrZero(scheme) == nil {
				t.Errorf("%s asks for %s, which is no security scheme", op.OperationId, scheme)
			}
			for _, scope := range scopes { // the interactive viewer omits the scopes of a bearer token
				if want := "Wants the scope `" + scope + "`."; !strings.Contains(op.Description, want) {
					t.Errorf("%s: description %q, want it to say: %s", op.OperationId, op.Description, want)
				}
			}
			all = append(all, strings.Join(append([]string{scheme}, scopes...), " "))
		}
	}
	if len(all) == 0 {
		return "public"
	}
	return strings.Join(all, " or ")
}

func TestContract_ScopesAreTheDocumented(t *testing.T) {
	schema := mustContract(t).model.Components.Schemas.GetOrZero("Scope").Schema()
	var got []string
	for _, n := range schema.Enum {
		got = append(got, n.Value)
	}
	if diff := cmp.Diff(Scopes(), got); diff != "" {
		t.Errorf("scopes (-served +described):\n%s", diff)
	}
}

func TestContract_OperationIDsAreUnique(t *testing.T) {
	seen := make(map[string]string)
	for path, item := range mustContract(t).model.Paths.PathItems.FromOldest() {
		for method, op := range item.GetOperations().FromOldest() {
			if other, twice := seen[op.OperationId]; twice || op.OperationId == "" || op.Summary == "" || len(op.Tags) != 1 {
				t.Errorf("%s %s: operationId %q (also of %q), summary %q, tags %q: want a name of its own, a summary and one tag",
					method, path, op.OperationId, other, op.Summary, op.Tags)
			}
			seen[op.OperationId] = method + " " + path
		}
	}
	if ids := slices.Sorted(maps.Keys(seen)); len(ids) < 20 {
		t.Errorf("operations = %q, want all", ids)
	}
}

// TestContract_DriftIsFound makes one change in the document, so that the document no longer
// describes the server. The validation of an exchange must report the difference.
func TestContract_DriftIsFound(t *testing.T) {
	h := start(t)
	req, err := http.NewRequest(http.MethodPost, "http://"+h.addr+"/v1/agents", nil)
	must(t, err)
	req.Header.Set("Authorization", "Bearer "+h.operator(acme))
	req.Header.Set("Content-Type", "application/json")
	sent := []byte(`{"name":"CI","externalId":"ci"}`)
	created := h.do("POST", "/v1/agents", h.operator(acme), sent).wantStatus(http.StatusCreated)
	refused := h.do("POST", "/v1/agents", h.operator(acme), `{}`).wantStatus(http.StatusBadRequest)
	for name, tc := range map[string]struct {
		from, to string
		reply    *reply
	}{
		"none":                   {"openapi: 3.1.0", "openapi: 3.1.0", created},
		"none in a refusal":      {"openapi: 3.1.0", "openapi: 3.1.0", refused},
		"an undocumented status": {"'400': {$ref: '#/components/responses/BadRequest'}", "'422': {$ref: '#/components/responses/BadRequest'}", refused},
		"an undocumented code":   {"x-problem-codes: [invalid_request, malformed_request,", "x-problem-codes: [malformed_request,", refused},
		"an undeclared member":   {"        externalId: {type: string}\n", "", created},
		"a missing member":       {"required: [id, name, status, createdAt, updatedAt]", "required: [id, name, status, createdAt, updatedAt, colour]", created},
		"another type":           {"        name: {type: string}\n        externalId: {type: string}", "        name: {type: integer}\n        externalId: {type: string}", created},
		"another format":         {"        createdAt: {type: string, format: date-time}\n        updatedAt", "        createdAt: {type: string, format: uuid}\n        updatedAt", created},
		"another value":          {"enum: [active, disabled]", "enum: [on, off]", created},
		"a missing header":       {"X-Request-Id: {$ref: '#/components/headers/RequestId'}", "X-Other: {$ref: '#/components/headers/RequestId'}", created},
		"an undeclared header":   {"            RateLimit: {$ref: '#/components/headers/RateLimit'}\n", "", created},
		"another media type":     {"application/problem+json:", "application/json:", refused},
		"an undescribed request": {"externalId: {type: string, minLength: 1, maxLength: 256,", "externalId: {type: integer,", created},
	} {
		t.Run(name, func(t *testing.T) {
			if !bytes.Contains(descriptionYAML, []byte(tc.from)) {
				t.Fatalf("openapi.yaml has no %q any more", tc.from)
			}
			// No schema cache: filling the cache takes long, and one exchange needs only a few
			// schemas.
			c, err := newContract(bytes.ReplaceAll(descriptionYAML, []byte(tc.from), []byte(tc.to)), config.WithSchemaCache(nil))
			must(t, err)
			got := c.violations(req, sent, tc.reply)
			if want := tc.from != tc.to; want != (got != "") {
				t.Errorf("violations = %q, want some: %v", got, want)
			}
		})
	}
}
