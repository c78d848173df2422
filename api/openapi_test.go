package api

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pb33f/libopenapi-validator/config"
	"github.com/pb33f/libopenapi-validator/schema_validation"
	v3 "github.com/pb33f/libopenapi/datamodel/high/v3"
	"github.com/pb33f/libopenapi/orderedmap"
	"go.yaml.in/yaml/v3"
)

func TestDescription_IsServedAsYAMLAndJSONFromTheSameSource(t *testing.T) {
	h := start(t)
	var want, got any
	must(t, yaml.Unmarshal(descriptionYAML, &want))
	for _, prefix := range []string{"", "/v1"} {
		r := h.do("GET", prefix+"/openapi.yaml", "", nil).wantStatus(http.StatusOK)
		if !bytes.Equal(r.body, descriptionYAML) {
			t.Errorf("GET %s/openapi.yaml = %d bytes, want openapi.yaml as it is", prefix, len(r.body))
		}
		r = h.do("GET", prefix+"/openapi.json", "", nil).wantStatus(http.StatusOK)
		must(t, json.Unmarshal(r.body, &got))
		if diff := cmp.Diff(jsonish(t, want), got); diff != "" {
			t.Errorf("GET %s/openapi.json differs from openapi.yaml (-yaml +json):\n%s", prefix, diff)
		}
	}
}

// jsonish returns v as a JSON decoder would return it.
func jsonish(t *testing.T, v any) (out any) {
	data, err := json.Marshal(v)
	must(t, err)
	must(t, json.Unmarshal(data, &out))
	return out
}

func TestDocuments_AreSentAgainOnlyWhenTheyChanged(t *testing.T) {
	h := start(t)
	for _, rt := range append(h.server.routes(), h.server.assetRoutes()...) {
		rt.path = strings.NewReplacer(":kind", "rule", ":page", "concepts").Replace(rt.path)
		if rt.scope != public || rt.method != http.MethodGet || slices.Contains([]string{"/health", "/v1/hosted/config", "/.well-known/authzen-configuration"}, rt.path) {
			continue
		}
		r := h.do("GET", rt.path, "", nil).wantStatus(http.StatusOK)
		etag := r.header.Get("ETag")
		for _, header := range []string{etag, "W/" + etag, `"x", ` + etag, "*"} {
			again := h.do("GET", rt.path, "", nil, "If-None-Match", header).wantStatus(http.StatusNotModified)
			if len(again.body) != 0 || again.header.Get("ETag") != etag {
				t.Errorf("GET %s, If-None-Match %s = %q, ETag %s, want no body, %s", rt.path, header, again.body, again.header.Get("ETag"), etag)
			}
		}
		h.do("GET", rt.path, "", nil, "If-None-Match", `"other"`).wantStatus(http.StatusOK)
		if head := h.do("HEAD", rt.path, "", nil).wantStatus(http.StatusOK); head.header.Get("ETag") != etag {
			t.Errorf("HEAD %s ETag = %s, want %s", rt.path, head.header.Get("ETag"), etag)
		}
	}
}

// TestContract_ExamplesAreValid checks every example in the document against its schema.
func TestContract_ExamplesAreValid(t *testing.T) {
	n := 0
	for path, item := range mustContract(t).model.Paths.PathItems.FromOldest() {
		for method, op := range item.GetOperations().FromOldest() {
			if op.RequestBody != nil {
				n += validateExamples(t, method+" "+path, op.RequestBody.Content)
			}
			for status, response := range op.Responses.Codes.FromOldest() {
				n += validateExamples(t, method+" "+path+" "+status, response.Content)
			}
		}
	}
	if n < 50 {
		t.Errorf("validated %d examples, want all", n)
	}
}

func validateExamples(t *testing.T, where string, content *orderedmap.Map[string, *v3.MediaType]) (n int) {
	t.Helper()
	v := schema_validation.NewSchemaValidator(config.WithFormatAssertions())
	for _, media := range content.FromOldest() {
		for name, value := range examplesOf(t, media) {
			if ok, errs := v.ValidateSchemaObject(media.Schema.Schema(), value); !ok {
				t.Errorf("%s: example %s: %s", where, name, explain(errs))
			}
			n++
		}
	}
	return n
}
