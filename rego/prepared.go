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
)

// prepared is a question for one document. Any number of goroutines may ask it at once.
//
// It runs OPA's evaluator itself: going through OPA's rego package costs some
// thirty allocations a question more.
type prepared struct {
	compiler *ast.Compiler
	query    ast.QueryCompiler
	body     ast.Body
	answer   ast.Var
	// store is empty, and txn, which is never closed, reads it: nothing is ever
	// written.
	store storage.Store
	txn   storage.Transaction
	// patterns keeps compiled regular expressions and globs: OPA's own cache
	// holds a hundred for the whole process.
	patterns cache.InterQueryValueCache
	// functions are the metered functions of the modules.
	functions map[string]*topdown.Builtin
	// tracer hears of every step, or is nil. With a tracer OPA's index of rules is off: it skips
	// rules, so that their lines are never evaluated.
	tracer topdown.QueryTracer
}

// prepare readies the question for the document at ref. patterns is how many
// compiled patterns are kept.
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

// ask returns the document's value, or nil if it is undefined. A failing expression is an error,
// and so is the end of limit.
func (p *prepared) ask(input ast.Value, limit *budget) (ast.Value, error) {
	var answer ast.Value
	err := topdown.NewQuery(p.body).
		WithCompiler(p.compiler).
		WithQueryCompiler(p.query).
		WithStore(p.store).
		WithTransaction(p.txn).
		WithInput(ast.NewTerm(input)).
		WithQueryTracer(p.tracer).
		WithIndexing(p.tracer == nil).
		WithCancel(limit).
		WithBuiltins(p.functions).
		WithStrictBuiltinErrors(true).
		WithInterQueryBuiltinValueCache(p.patterns).
		WithMetrics(metrics.NoOp()).
		WithTime(time.Unix(0, 1)). // no function that reads it can be called
		WithSeed(noSeed{}).
		Iter(context.Background(), func(r topdown.QueryResult) error {
			answer = r[p.answer].Value
			return nil
		})
	if err != nil {
		return nil, err
	}
	return answer, nil
}

// noSeed is the random source of every evaluation: no function that reads it
// can be called.
type noSeed struct{}

func (noSeed) Read([]byte) (int, error) { return 0, fmt.Errorf("there is no chance here") }
