package proof

import (
	"strings"

	"writ/engine/glob"
)

// letter stands for the text that a * matches. No entry contains it.
const letter = "\x00"

// ActionCovers reports whether the entry by matches every action type that entry matches. Both
// belong to lists of allowed action types, which compare exactly.
func ActionCovers(by, entry string) bool {
	set, err := glob.CompileActions([]string{by})
	return err == nil && set.Match(strings.ReplaceAll(entry, "*", letter)) >= 0
}

// DeniedCovers reports whether the entry by denies every action type that entry denies. Both
// belong to lists of denied action types, so it looks at all spellings that each of them denies.
func DeniedCovers(by, entry string) bool {
	wild := strings.Contains(by, "*")
	if strings.Contains(entry, "*") {
		return wild && ActionCovers(by, entry) && ActionCovers(folded(by, false), folded(entry, false))
	}
	if !wild {
		return folded(by, true) == folded(entry, true)
	}
	// Words may be separated by a dot, a hyphen, an underscore, or several of these.
	return ActionCovers(folded(by, false), strings.ReplaceAll(folded(entry, true), ".", letter))
}

// DeniedBeats reports whether a denied action type matches every action type that an allowed one
// matches.
func DeniedBeats(denied, allowed string) bool {
	if strings.Contains(allowed, "*") {
		return ActionCovers(denied, allowed)
	}
	d, err := glob.CompileDenied([]string{denied})
	return err == nil && d.Match(allowed) >= 0
}

func folded(entry string, words bool) string { return string(glob.FoldAction(nil, entry, words)) }
