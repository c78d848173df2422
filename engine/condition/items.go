package condition

import (
	"encoding/json"
	"strings"
)

// itemsOf returns the elements of a text as a list: those of a JSON array of strings, or
// the parts between commas if it is no such array. They are trimmed, and empty ones
// dropped.
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

// itemSteps is what a macro takes for each element, in steps: see maxWork. The
// patterns in it charge for themselves.
const itemSteps = 128
