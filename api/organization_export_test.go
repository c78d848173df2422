package api

import (
	"bytes"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/receipt"
	"writ.example/writ/storage/storagetest"
	"writ.example/writ/storage/transfer"
)

// TestOrganizationExport exports an organization, whole and from the middle. Nothing of another one is in it.
func TestOrganizationExport(t *testing.T) {
	h := start(t)
	h.register(acme)
	h.register(rival)
	for range 3 {
		h.evaluate(acme, intent()).wantStatus(http.StatusOK)
		h.evaluate(rival, intent()).wantStatus(http.StatusOK)
	}
	whole := h.do("GET", "/v1/organization/export", h.operator(acme), nil).wantStatus(http.StatusOK)
	whole.wantHeader("Content-Type", "application/octet-stream")
	whole.wantHeader("Content-Disposition", `attachment; filename="organization-2026-11-21.ndjson"`)
	keys, err := receipt.ParseKeys(h.server.cfg.JWKS())
	must(t, err)
	checked, err := transfer.Check(t.Context(), bytes.NewReader(whole.body), int64(len(whole.body)), transfer.CheckConfig{Keys: keys,
		Validate: func(storage.Document) ([]string, error) { return nil, nil }, Plans: []string{engine.FreePlan}})
	if err != nil || checked.Footer.Rows != 3 {
		t.Fatalf("Check = %+v, %v, want 3 rows\n%s", checked, err, whole.body)
	}
	if bytes.Contains(whole.body, []byte(rival)) {
		t.Errorf("the export of %s has something of %s:\n%s", acme, rival, whole.body)
	}
	lines := strings.SplitAfter(string(whole.body), "\n")
	var first struct {
		Header struct{ ID, Last string } `json:"header"`
	}
	var row struct {
		Row struct {
			DecisionID string `json:"decision_id"`
		} `json:"row"`
	}
	must(t, json.Unmarshal([]byte(lines[0]), &first, json.MatchCaseInsensitiveNames(true)))
	must(t, json.Unmarshal([]byte(lines[2]), &row))
	query := url.Values{"export": {first.Header.ID}, "last": {first.Header.Last}, "after": {row.Row.DecisionID}}
	rest := h.do("GET", "/v1/organization/export?"+query.Encode(), h.operator(acme), nil).wantStatus(http.StatusOK)
	all := strings.SplitAfter(string(rest.body), "\n")
	if got, want := strings.Join(all[:len(all)-2], ""), strings.Join(lines[3:len(lines)-2], ""); got != want {
		t.Errorf("from the middle it is\n%s, want\n%s", got, want)
	}
	for name := range query {
		part := url.Values{name: query[name]}
		h.do("GET", "/v1/organization/export?"+part.Encode(), h.operator(acme), nil).wantStatus(http.StatusBadRequest)
	}
	h.do("GET", "/v1/organization/export?limit=1", h.operator(acme), nil).wantField("limit")
	h.do("HEAD", "/v1/organization/export", h.operator(acme), nil).wantStatus(http.StatusOK)
	h.wantNoExports()
}

// TestOrganizationExport_Large exports more than a piece, and more than fasthttp reads at a time.
func TestOrganizationExport_Large(t *testing.T) {
	h := start(t)
	h.register(acme)
	h.seed(storagetest.NewWriter(), acme, 700, strings.Repeat("prod", 100))
	body := h.do("GET", "/v1/organization/export", h.operator(acme), nil).wantStatus(http.StatusOK).body
	if !bytes.Contains(body[bytes.LastIndexByte(bytes.TrimSpace(body), '\n'):], []byte(`"footer":{"rows":700,`)) {
		t.Errorf("the export of 700 rows ends with %s", body[max(0, len(body)-300):])
	}
	h.wantNoExports()
}

// TestOrganizationExport_FaultyStore has the store fail: the answer is a problem.
func TestOrganizationExport_FaultyStore(t *testing.T) {
	h := start(t, func(c *setup) {})
	h.server.cfg.Freeze = nil
	h.do("GET", "/v1/organization/export", h.operator(acme), nil).wantStatus(http.StatusInternalServerError)
	h.wantNoExports()
}
