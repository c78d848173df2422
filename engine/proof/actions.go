package proof

import (
	"strings"

	"writ.example/writ/engine/glob"
)

// letter stands for the text that a * matches. No entry has this character.
const letter = "\x00"

// ActionCovers reports whether its first entry matches every action type that its second entry
// matches. Both entries belong to lists of allowed action types, which compare exactly.
func ActionCovers(by, entry string) bool {
	set, err := glob.CompileActions([]string{by})
	return err == nil && set.Match(strings.ReplaceAll(entry, "*", letter)) >= 0
}

// DeniedCovers reports whether its first entry denies every action type that its second entry
// denies. Both entries belong to lists of denied action types. So all spellings that an entry
// denies are compared.
func DeniedCovers(by, entry string) bool {
	wild := strings.Contains(by, "*")
	if strings.Contains(entry, "*") {
		return wild && ActionCovers(by, entry) && ActionCovers(folded(by, false), folded(entry, false))
	}
	if !wild {
		return folded(by, true) == folded(entry, true)
	}
	// An entry without * denies spellings with hyphens, underscores or runs of dots between its
	// words.
	return ActionCovers(folded(by, false), strings.ReplaceAll(folded(entry, true), ".", letter))
}

// DeniedBeats reports whether a denied action type matches every action type that an allowed entry
// matches.
func DeniedBeats(denied, allowed string) bool {
	if strings.Contains(allowed, "*") {
		return ActionCovers(denied, allowed)
	}
	d, err := glob.CompileDenied([]string{denied})
	return err == nil && d.Match(allowed) >= 0
}

func folded(entry string, words bool) string { return string(glob.FoldAction(nil, entry, words)) }
