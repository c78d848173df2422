// Package reference decides a second time. It is written from the rules of
// decisions.md and resources.md alone, by somebody who had not read package
// engine, and only tests import it: where the two disagree, one of them has
// misread a rule or the rule can be read in two ways. It is simple rather than
// fast, keeps every reading that the text asks for, and imports nothing of
// writ's.
package reference
