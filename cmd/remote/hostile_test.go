package remote_test

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/go-json-experiment/json/jsontext"

	"writ.example/writ/cmd/remote"
)

// printers are the functions that print a server's document, by a document that they print.
var printers = map[string]struct {
	print func(io.Writer, jsontext.Value) error
	doc   string
}{
	"line": {func(w io.Writer, doc jsontext.Value) error {
		line, err := remote.DecisionLine(doc)
		_, _ = io.WriteString(w, strings.ReplaceAll(line, "\n", "\x00"))
		return err
	}, row},
	"show":      {remote.ShowDecision, row},
	"why":       {remote.Why, row},
	"json":      {func(w io.Writer, doc jsontext.Value) error { return remote.JSON(w, doc) }, row},
	"approval":  {remote.ShowApproval(time.Time{}), held},
	"judged":    {remote.Judged, held},
	"approvals": {one(remote.PrintApprovals(time.Time{})), held},
	"agent":     {remote.AgentChanged, `{"id":"HOSTILE","externalId":"HOSTILE","status":"HOSTILE"}`},
	"agents":    {one(remote.PrintAgents), `{"id":"HOSTILE","externalId":"HOSTILE","status":"HOSTILE","name":"HOSTILE"}`},
	"keys":      {one(remote.PrintKeys), `{"id":"HOSTILE","name":"HOSTILE","agent_id":"HOSTILE","scopes":["HOSTILE"]}`},
	"usage":     {remote.PrintUsage, `{"plan":"HOSTILE","meters":{"HOSTILE":{}},"upgrade":{"reason":"HOSTILE"}}`},
}

func one(print func(io.Writer, []jsontext.Value) error) func(io.Writer, jsontext.Value) error {
	return func(w io.Writer, doc jsontext.Value) error { return print(w, []jsontext.Value{doc}) }
}

const (
	row = `{"decision_id":"HOSTILE","agent_id":"HOSTILE","action_type":"HOSTILE","resource":"HOSTILE","decision":"deny",
"cost":{"amount_minor":1,"currency":"HOSTILE"},"metadata_keys":["HOSTILE"],"metadata":{"HOSTILE":"HOSTILE"},"policy_id":"HOSTILE",
"reasons":["HOSTILE","code: HOSTILE"],"session_id":"HOSTILE","approval_id":"HOSTILE","credential":"HOSTILE","issued_at":"HOSTILE",
"receipt":{"digest":"HOSTILE","kid":"HOSTILE"},"findings":[{"code":"HOSTILE","outcome":"deny","decides":true,"rule_id":"HOSTILE"},
{"code":"code","outcome":"deny"}],"settlement":{"outcome":"HOSTILE","amount_minor":1,"currency":"HOSTILE","external_ref":"HOSTILE"},
"unexplained":"HOSTILE","explanation":{"decision":"deny","findings":[{"code":"HOSTILE","outcome":"deny","decides":true}],
"resource":{"written":"HOSTILE","error":"HOSTILE","allow":[{"text":"HOSTILE","readers":["HOSTILE"]}]},"unknown":["HOSTILE"],
"checks":[{"code":"code","result":"fail","holds":"HOSTILE","field":"HOSTILE","value":"HOSTILE","got":"HOSTILE","readers":["HOSTILE"]}],
"rules":[{"id":"HOSTILE","name":"HOSTILE","outcome":"deny","result":"HOSTILE","condition":"HOSTILE","error":"HOSTILE","because":9,
"leaves":[{"text":"HOSTILE","result":"HOSTILE","error":"HOSTILE","line":1},{"text":"HOSTILE","result":"false"}]}]}}`
	held = `{"approval_id":"HOSTILE","status":"HOSTILE","agent_id":"HOSTILE","action_type":"HOSTILE","resource":"HOSTILE",
"cost":{"amount_minor":1,"currency":"HOSTILE"},"metadata_keys":["HOSTILE"],"metadata":{"HOSTILE":"HOSTILE"},"intent_id":"HOSTILE",
"findings":[{"reason":"HOSTILE"}],"decided_by":"HOSTILE","comment":"HOSTILE","revoked_by":"HOSTILE","used_by":"HOSTILE"}`
)

// hostile is a text of JSON with characters that a terminal obeys, some of them not escaped.
const hostile = `<b>\u001b[2J\u202e\u2066\r\t` + "\u009b\u202e\x7f" + `\udb40\udc41</b>`

// TestPrint_HostileTexts holds that no printer prints a character that a terminal obeys.
func TestPrint_HostileTexts(t *testing.T) {
	for name, p := range printers {
		var b bytes.Buffer
		doc := strings.ReplaceAll(p.doc, "HOSTILE", hostile)
		if err := p.print(&b, jsontext.Value(doc)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !strings.Contains(b.String(), `\u001b[2J\u202e`) {
			t.Errorf("%s prints %q, which lacks the text", name, b.String())
		}
		wantPlain(t, name, b.String())
	}
}

func wantPlain(t *testing.T, name, text string) {
	t.Helper()
	if i := strings.IndexFunc(text, func(r rune) bool { return r != '\n' && !unicode.IsGraphic(r) }); i >= 0 {
		t.Errorf("%s prints %q", name, text[max(0, i-20):])
	}
}

// FuzzPrint holds that whatever a server answers is printed without such a character, or is an error.
func FuzzPrint(f *testing.F) {
	for _, p := range printers {
		f.Add(strings.ReplaceAll(p.doc, "HOSTILE", hostile))
	}
	f.Add(`[]`)
	f.Add(`null`)
	f.Fuzz(func(t *testing.T, doc string) {
		for name, p := range printers {
			var b bytes.Buffer
			if err := p.print(&b, jsontext.Value(doc)); err == nil {
				wantPlain(t, name, b.String())
			}
		}
	})
}
