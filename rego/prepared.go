package rego

import (
	"context"
	"fmt"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/metrics"
	"github.com/open-policy-agent/opa/v1/storage"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
	"github.com/open-policy-agent/opa/v1/topdown"
	"github.com/open-policy-agent/opa/v1/topdown/cache"
	"github.com/open-policy-agent/opa/v1/topdown/print"
)

// prepared is a query for the value of one document. Any number of goroutines may ask it at once.
//
// It runs OPA's evaluator directly. OPA's rego package would make about thirty more allocations for
// each query.
type prepared struct {
	compiler *ast.Compiler
	query    ast.QueryCompiler
	body     ast.Body
	answer   ast.Var
	// store is empty and is never written to: see [documents]. txn reads it and is never closed.
	store storage.Store
	txn   storage.Transaction
	// patterns keeps compiled regular expressions and globs. OPA's own cache would hold only a
	// hundred for the whole process.
	patterns cache.InterQueryValueCache
	// functions are the metered functions of the modules.
	functions map[string]*topdown.Builtin
	// tracer gets every step of an evaluation. It may be nil. With a tracer OPA's index of rules is
	// off, because the lines of a rule that the index skips are never evaluated. It is off with
	// functions too: the index reads values, and nothing would be charged for that.
	tracer topdown.QueryTracer
	// print gets what conditions print. It is nil except in tools.
	print print.Hook
}

// prepare prepares the query for the document at ref. It keeps up to patterns compiled patterns.
func prepare(c *ast.Compiler, ref ast.Ref, patterns int) (*prepared, error) {
	p := &prepared{compiler: c, query: c.QueryCompiler(), answer: "answer", store: inmem.New()}
	body, err := p.query.Compile(ast.NewBody(ast.Equality.Expr(ast.NewTerm(ref), ast.NewTerm(p.answer))))
	if err != nil {
		return nil, fmt.Errorf("preparing %v: %w", ref, explain(err))
	}
	p.body = body
	if p.txn, err = p.store.NewTransaction(context.Background()); err != nil {
		return nil, fmt.Errorf("opening an empty document: %w", err)
	}
	p.patterns = cache.NewInterQueryValueCache(context.Background(), &cache.Config{
		InterQueryBuiltinValueCache: cache.InterQueryBuiltinValueCacheConfig{MaxNumEntries: &patterns},
	})
	return p, nil
}

// ask returns the document's value, or nil if it is undefined. It returns an error if an expression
// fails, or if limit ends the evaluation.
func (p *prepared) ask(input ast.Value, limit *budget) (ast.Value, error) {
	var answer ast.Value
	err := p.iterate(p.body, input, limit, func(r topdown.QueryResult) error {
		answer = r[p.answer].Value
		return nil
	})
	if err != nil {
		return nil, err
	}
	return answer, nil
}

// iterate calls f with each result of a body.
func (p *prepared) iterate(b ast.Body, input ast.Value, limit *budget, f func(topdown.QueryResult) error) error {
	store := p.store
	if limit.lists != nil {
		store = &documents{p.store, limit.lists, limit.root}
	}
	return topdown.NewQuery(b).
		WithCompiler(p.compiler).
		WithQueryCompiler(p.query).
		WithStore(store).
		WithTransaction(p.txn).
		WithInput(ast.NewTerm(input)).
		WithQueryTracer(p.tracer).
		WithPrintHook(p.print).
		WithIndexing(p.tracer == nil && p.functions == nil).
		WithCancel(limit).
		WithBuiltins(p.functions).
		WithStrictBuiltinErrors(true).
		WithInterQueryBuiltinValueCache(p.patterns).
		WithMetrics(metrics.NoOp()).
		WithTime(time.Unix(0, 1)). // no function that reads it can be called
		WithSeed(noSeed{}).
		Iter(context.Background(), f)
}

// noSeed is the random source of every evaluation. It always fails, because no function that reads
// the source can be called.
type noSeed struct{}

func (noSeed) Read([]byte) (int, error) { return 0, fmt.Errorf("there is no chance here") }
