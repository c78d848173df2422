package condition

import (
	"strings"
	"testing"

	"writ.example/writ/engine/resource"
)

func TestUnrendered_NamesTheSmallestParts(t *testing.T) {
	for source, want := range map[string]string{
		`intent.action_type == "a"`:                                             "",
		`intent.resource == "a" && true`:                                        "",
		`intent.action_type == "a" && intent.resource == intent.agent_id`:       "30 compares two fields",
		`!(size(intent.resource) > 5) || intent.agent_id == "x"`:                "3 calculates with size",
		"intent.agent_id == \"é\" &&\n  intent.cost.amount_minor * 2 > 50":      "2:3 calculates with *",
		`intent.metadata.exists(k, k == "x")`:                                   "1 macro",
		`intent.agent_id == "a" ? intent.resource.startsWith("x" + "y") : true`: "26 calculates with +",
		`intent.agent_id.lowerAscii() == "a" || [1].all(x, x > 1)`:              "1 calculates with lowerAscii|40 macro",
	} {
		c, err := Compile(`{"cel":`+Quote(source)+`}`, Options{Side: resource.ForAllow})
		if err != nil {
			t.Errorf("%s: %v", source, err)
			continue
		}
		var got []string
		for _, m := range c.Unrendered() {
			got = append(got, m.String())
		}
		parts := strings.Split(want, "|")
		if want == "" {
			parts = nil
		}
		if len(got) != len(parts) {
			t.Errorf("%s: %q, want %q", source, got, want)
			continue
		}
		for i, part := range parts {
			at, why, _ := strings.Cut(part, " ")
			line, column, ok := strings.Cut(at, ":")
			if !ok {
				line, column = "1", at
			}
			if !strings.Contains(got[i], "line "+line+", column "+column+":") || !strings.Contains(got[i], why) {
				t.Errorf("%s: %q, want line %s, column %s and %q", source, got[i], line, column, why)
			}
		}
	}
}
