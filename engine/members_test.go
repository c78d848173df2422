package engine

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ.example/writ/engine/condition"
)

// TestIntent_MembersAreThoseOfTheTable checks that the text members of an intent are those in the
// table of fields, and that Text returns each of them.
func TestIntent_MembersAreThoseOfTheTable(t *testing.T) {
	var in Intent
	var want, got []string
	v := reflect.ValueOf(&in).Elem()
	for _, f := range reflect.VisibleFields(v.Type()) {
		if f.Type.Kind() == reflect.String && f.IsExported() {
			name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "-" {
				continue // the session, which is not in the intent's document
			}
			want = append(want, name)
			v.FieldByIndex(f.Index).SetString(name)
			if m, ok := condition.MemberNamed(name); ok && m.Optional != (options == "omitzero") {
				t.Errorf("%s: optional = %v in the table, %q in the document", name, m.Optional, options)
			}
		}
	}
	for _, m := range condition.Members {
		text := in.Text(m.ID)
		if text == nil || *text != m.Name {
			t.Errorf("Text(%s) is not that member", m.Name)
		}
		if m.Path != "intent."+m.Name || m.Size == 0 {
			t.Errorf("%s has the path %q and the size %d", m.Name, m.Path, m.Size)
		}
		got = append(got, m.Name)
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("members (-document +table):\n%s", diff)
	}
	e := newEvaluation(testPolicy(), &Input{Intent: &in, Agent: AgentActive})
	for _, m := range condition.Members {
		if s, ok := e.Text(m.ID); s != m.Name || !ok {
			t.Errorf("an evaluation has %q for %s", s, m.Name)
		}
	}
}
