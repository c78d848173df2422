package proof

import (
	"strings"

	"writ/engine/glob"
)

// letter stands for the text of a *. No entry has it.
const letter = "\x00"

// ActionCovers reports whether the entry by of a list of allowed action types matches
// everything that the entry does. Both are compared exactly.
func ActionCovers(by, entry string) bool {
	set, err := glob.CompileActions([]string{by})
	return err == nil && set.Match(strings.ReplaceAll(entry, "*", letter)) >= 0
}

// DeniedCovers is [ActionCovers] of a list of denied action types, with all spellings that
// each denies.
func DeniedCovers(by, entry string) bool {
	wild := strings.Contains(by, "*")
	if strings.Contains(entry, "*") {
		return wild && ActionCovers(by, entry) && ActionCovers(folded(by, false), folded(entry, false))
	}
	if !wild {
		return folded(by, true) == folded(entry, true)
	}
	// The separator of words may be a dot, a hyphen, an underscore, or several of them.
	return ActionCovers(folded(by, false), strings.ReplaceAll(folded(entry, true), ".", letter))
}

// DeniedBeats reports whether a denied action type matches everything that an allowed one
// does.
func DeniedBeats(denied, allowed string) bool {
	if strings.Contains(allowed, "*") {
		return ActionCovers(denied, allowed)
	}
	d, err := glob.CompileDenied([]string{denied})
	return err == nil && d.Match(allowed) >= 0
}

func folded(entry string, words bool) string { return string(glob.FoldAction(nil, entry, words)) }
