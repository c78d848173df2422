package rego

import (
	"fmt"
	"regexp"
	"slices"
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
	"github.com/open-policy-agent/opa/v1/types"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
)

// entry is the name of the rule that decides the body of a rule. A module can have another one: see
// [entries].
const entry = "match"

// conditionPackage is the package of a condition without a package clause.
const conditionPackage = "writ.condition"

// CompileCondition compiles a rule's condition, as [engine.Options].CompileRego.
//
// source is the body of a rule, or a Rego v1 module of any package that defines match, deny or allow:
// see [entries]. The input has the members intent, decided_at, agent and policy. If the source names
// lists, the input also has lists, with a set for each list. The condition matches if the rule that
// decides is true, or a set that is not empty. It does not match if the rule is false, undefined or an
// empty set. A run-time error in any expression is an error of the condition. The conditions of one
// evaluation share a number of steps. A condition that uses them up is an error, too. Time does not
// matter.
//
// As everywhere in Rego, a negated call with a missing member, such as `not
// startswith(input.intent.metadata.env, "x")`, is undefined, not true.
//
// The error is a *[condition.Error] with the place of each mistake.
func CompileCondition(source string) (engine.RegoCondition, error) {
	return new(Libraries).Compile(source)
}

// Compile implements [engine.Libraries]. It is [CompileCondition], and the condition may import the
// libraries.
func (l *Libraries) Compile(source string) (engine.RegoCondition, error) {
	module, err := parseCondition(source)
	if err != nil {
		return nil, err
	}
	imports, err := l.importedBy(module)
	if err != nil {
		return nil, err
	}
	c, err := l.compile(module, imports)
	if err != nil {
		return nil, err
	}
	name := entryOf(module)
	ref := module.Package.Path.Append(ast.StringTerm(name))
	if err := checkEntry(c, module, name, ref); err != nil {
		return nil, err
	}
	if err := checkBounds(module, l); err != nil {
		return nil, err
	}
	lists, err := listsOf(c, inputLists)
	if err != nil {
		return nil, err
	}
	documents, err := documentsOf(c, module)
	if err != nil {
		return nil, err
	}
	p, err := prepare(c, ref, patternsKept(len(source)))
	if err != nil {
		return nil, err
	}
	items := callsItems(c.Modules[entry])
	reads := readsOf(c, c.GetRulesExact(ref))
	for _, name := range l.withUses(imports) {
		reads.Resource = reads.Resource || l.byName[name].reads.Resource
		reads.Agent = reads.Agent || l.byName[name].reads.Agent
	}
	messages := messagesOf(c, module, l.imports(imports))
	reads.Messages = slices.ContainsFunc(messages, messageRule.kept)
	reason := types.S
	if set, ok := c.TypeEnv.GetByRef(module.Package.Path.Append(ast.StringTerm(reasonEntry))).(*types.Set); ok {
		reason = set.Of()
	}
	p.functions = newMeters(c, l.imports(imports), module).functions
	size := compiledOverhead + compiledPerByte*len(source)
	compiled := &sandboxed{source: source, ref: ref, question: p, lists: lists, documents: documents, size: size,
		items: items, reads: reads,
		from: l, libraries: l.withUses(imports), messages: messages, reason: reason}
	compiled.reviewed = sync.OnceValue(compiled.review)
	return compiled, nil
}

// packageClause matches the start of a module. The body of a rule cannot start with a package
// clause.
var packageClause = regexp.MustCompile(`^(\s|#[^\n]*\n)*package\s`)

// parseCondition returns source as a module. Locations in the module are locations in source.
func parseCondition(source string) (*ast.Module, error) {
	if len(source) > condition.MaxCondition {
		return nil, refuse(
			nil, "the source is %d bytes long, at most %d are allowed", len(source), condition.MaxCondition,
		)
	}
	if packageClause.MatchString(source) {
		m, err := ast.ParseModuleWithOpts("", source, parserOptions())
		if err != nil {
			return nil, explain(err)
		}
		return m, nil
	}
	opts := parserOptions()
	opts.SkipRules = true
	body, err := ast.ParseBodyWithOpts(source, opts)
	if err != nil {
		return nil, explain(err)
	}
	if len(body) == 0 {
		return nil, refuse(nil, "the source is empty")
	}
	m, err := ast.ParseModuleWithOpts("", "package "+conditionPackage+"\n\n"+entry+" if true", parserOptions())
	if err != nil {
		return nil, explain(err)
	}
	m.Rules[0].Body = body
	m.Rules[0].SetLoc(body.Loc())
	return m, nil
}

// The bytes that compiled Rego keeps in memory: a constant, and a number for each byte of its
// source. Both were measured. TestSize checks them.
const (
	compiledOverhead = 64 << 10
	compiledPerByte  = 48
)

// patternsKept returns how many compiled patterns to keep for a source of the given length in
// bytes. The source can contain bytes/32 patterns. The other 16 are for patterns that come from the
// input.
func patternsKept(bytes int) int { return 16 + bytes/32 }

// sandboxed is an [engine.RegoCondition] that runs in the sandbox.
type sandboxed struct {
	source   string
	ref      ast.Ref // the rule that decides
	question *prepared
	// lists has the names of the lists of texts that it reads, and documents those of data.lists.
	lists, documents []string
	size             int
	items            bool // whether it calls writ.items
	reads            engine.RegoReads
	// from has all libraries. libraries names the libraries that the condition uses.
	from      *Libraries
	libraries []string
	// messages has the rules of its set of messages. reason is the type of the messages.
	messages []messageRule
	reason   types.Type
	// reviewed returns what review returned the first time: a review compiles the source again.
	reviewed func() condition.Review
}

// Match implements [engine.RegoCondition].
func (c *sandboxed) Match(in *engine.RegoInput) (bool, error) {
	work := in.Work
	if work == nil {
		work = new(condition.Work)
	}
	if !c.meets(in, work) {
		return false, nil
	}
	left := c.budget(in, work)
	input, err := c.input(in)
	if err != nil {
		return false, fmt.Errorf("evaluating a condition: %w", err)
	}
	v, err := c.question.ask(input, left)
	if err != nil {
		if matches, known := c.recovered(input, left); known {
			return matches, nil
		}
	}
	if err != nil && (left.spent || topdown.IsCancel(err)) {
		err = condition.ErrTooMuchWork
	}
	if err != nil {
		return false, fmt.Errorf("evaluating a condition: %w", err)
	}
	switch v.(type) {
	case nil, ast.Boolean, ast.Set:
		return matching(v), nil
	}
	return false, fmt.Errorf("evaluating a condition: %v is not a boolean", c.ref)
}

// matching reports whether a condition matches whose rule has the value v: true, or a set that is not
// empty. v is nil if the rule has no value.
func matching(v ast.Value) bool {
	if set, ok := v.(ast.Set); ok {
		return set.Len() > 0
	}
	return v != nil && v.Compare(ast.Boolean(true)) == 0
}

// Lists implements [engine.RegoCondition].
func (c *sandboxed) Lists() []string { return c.lists }

// Documents implements [engine.RegoCondition].
func (c *sandboxed) Documents() []string { return c.documents }

// Libraries implements [engine.RegoCondition].
func (c *sandboxed) Libraries() []string { return c.libraries }

// Size implements [engine.RegoCondition].
func (c *sandboxed) Size() int { return c.size }

// Reads implements [engine.RegoCondition].
func (c *sandboxed) Reads() engine.RegoReads { return c.reads }
