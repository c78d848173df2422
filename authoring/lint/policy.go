package lint

import (
	"fmt"
	"slices"
	"strings"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
	"writ.example/writ/engine/glob"
	"writ.example/writ/engine/proof"
	"writ.example/writ/engine/resource"
)

// The fields of a policy's lists.
const (
	allowedActions  = "policy.allowed_action_types"
	deniedActions   = "policy.denied_action_types"
	allowedPatterns = "policy.allowed_resource_patterns"
	blockedPatterns = "policy.blocked_resource_patterns"
)

// Policy returns the warnings about a policy, which must compile.
func Policy(p *engine.ActionPolicy) []Warning {
	var w warnings
	if len(p.AllowedActionTypes) == 0 {
		w.add(allowedActions, emptyAllow, "is empty, which allows nothing: the policy denies every action",
			`name the action types, or "*" for all`)
	}
	w.actions(p)
	w.patterns(p)
	for _, list := range []struct {
		field    string
		patterns []string
	}{
		{allowedActions, p.AllowedActionTypes}, {deniedActions, p.DeniedActionTypes},
		{allowedPatterns, p.AllowedResourcePatterns}, {blockedPatterns, p.BlockedResourcePatterns},
	} {
		for i, pattern := range list.patterns {
			if sign := regexSign(pattern); sign != "" {
				w.add(at(list.field, i), regexLike, looksLikeRegex(pattern, sign), globInstead)
			}
		}
	}
	return w
}

func at(field string, i int) string { return fmt.Sprintf("%s[%d]", field, i) }

func (w *warnings) actions(p *engine.ActionPolicy) {
	allowed := actionsOf(p.AllowedActionTypes, proof.ActionCovers)
	denied := actionsOf(p.DeniedActionTypes, proof.DeniedCovers)
	everything := slices.IndexFunc(p.DeniedActionTypes, isEveryAction)
	for i, entry := range p.AllowedActionTypes {
		if by := allowed.coveredBy(i); by >= 0 {
			w.covered(allowedActions, i, p.AllowedActionTypes, by)
			continue
		}
		beats := func(by int) bool { return proof.DeniedBeats(p.DeniedActionTypes[by], entry) }
		if by := denied.first(entry, beats); by >= 0 && everything < 0 {
			w.beaten(allowedActions, i, entry, deniedActions, by, p.DeniedActionTypes[by])
		}
	}
	for i := range p.DeniedActionTypes {
		if by := denied.coveredBy(i); by >= 0 && by != everything {
			w.covered(deniedActions, i, p.DeniedActionTypes, by)
		}
	}
	if everything >= 0 {
		w.add(at(deniedActions, everything), matchAll, "denies every action type, so that nothing is ever allowed",
			"name the action types to deny, or suspend the policy")
	}
}

func isEveryAction(entry string) bool { return strings.Trim(entry, "*") == "" }

func (w *warnings) patterns(p *engine.ActionPolicy) {
	allowed := shapesOf(p.AllowedResourcePatterns, resource.ForAllow)
	blocked := shapesOf(p.BlockedResourcePatterns, resource.ForBlock)
	literals := literalsOf(p.AllowedResourcePatterns)
	everything := slices.Index(p.BlockedResourcePatterns, "**")
	for i, pattern := range p.AllowedResourcePatterns {
		if by := allowed.coveredBy(i); by >= 0 {
			w.covered(allowedPatterns, i, p.AllowedResourcePatterns, by)
		} else {
			beats := func(by int) bool { return blocked.list[by].Beats(allowed.list[i]) }
			if by := blocked.first(allowed.list[i], beats); by >= 0 && everything < 0 {
				w.beaten(allowedPatterns, i, pattern, blockedPatterns, by, p.BlockedResourcePatterns[by])
			}
		}
		w.matchesLittle(allowedPatterns, i, pattern, resource.ForAllow)
	}
	for i, pattern := range p.BlockedResourcePatterns {
		if by := blocked.coveredBy(i); by >= 0 && by != everything {
			w.covered(blockedPatterns, i, p.BlockedResourcePatterns, by)
		}
		w.matchesLittle(blockedPatterns, i, pattern, resource.ForBlock)
		if letters, instead := oneCase(pattern, literals); letters != "" {
			const form = "%s blocks %s in this case only, and a system that ignores case acts on the other"
			w.add(at(blockedPatterns, i), letterCase, fmt.Sprintf(form, condition.Quote(pattern), letters), instead)
		}
	}
	if everything >= 0 {
		w.add(at(blockedPatterns, everything), matchAll, "blocks every resource, so that nothing is ever allowed",
			"name what to block, or suspend the policy")
	}
}

func (w *warnings) matchesLittle(field string, i int, pattern string, side resource.Side) {
	if problem, instead := glob.Warning(pattern, side); problem != "" {
		w.add(at(field, i), matchesLittle, problem, instead)
	}
}

func (w *warnings) covered(field string, i int, list []string, by int) {
	message := fmt.Sprintf("%s is covered by %s, entry %d of the list", condition.Quote(list[i]),
		condition.Quote(list[by]), by)
	if list[i] == list[by] {
		message = fmt.Sprintf("%s is already in the list, as entry %d", condition.Quote(list[i]), by)
	}
	w.add(at(field, i), unreachable, message, "remove it, or narrow the other entry")
}

func (w *warnings) beaten(field string, i int, entry, block string, by int, other string) {
	w.add(at(field, i), unreachable,
		fmt.Sprintf(
			"%s allows nothing: %s, %s, denies everything that it matches",
			condition.Quote(entry), at(block, by), condition.Quote(other),
		),
		"remove it, or narrow the entry that denies")
}
