package condition

import (
	"encoding/json"
	"strings"
)

// itemsOf returns the items of a text: the members of a JSON array of strings, or the parts
// between commas of any other text. Items are trimmed, and empty items are dropped.
func itemsOf(text string) []string {
	parts, ok := stringArray(text)
	if !ok {
		parts = strings.Split(text, ",")
	}
	items := parts[:0]
	for _, part := range parts {
		if item := strings.TrimSpace(part); item != "" {
			items = append(items, item)
		}
	}
	return items
}

func stringArray(text string) ([]string, bool) {
	if !strings.HasPrefix(strings.TrimLeft(text, " \t\r\n"), "[") {
		return nil, false
	}
	var members []any
	if err := json.Unmarshal([]byte(text), &members); err != nil {
		return nil, false
	}
	parts := make([]string, len(members))
	for i, member := range members {
		s, ok := member.(string)
		if !ok {
			return nil, false
		}
		parts[i] = s
	}
	return parts, true
}

// itemSteps is the number of steps that a macro takes for each item: see maxWork. Patterns in the
// macro charge their own steps.
const itemSteps = 128
