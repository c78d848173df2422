package rego

import (
	"context"
	"fmt"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/metrics"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/storage"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
)

func parserOptions() ast.ParserOptions {
	return ast.ParserOptions{Capabilities: sandbox(), RegoVersion: ast.RegoV1, ProcessAnnotation: true}
}

// compile type-checks modules, by file name, against schema, the JSON schema of
// the input. They can refer to one another, to the input and to nothing else.
func compile(modules map[string]*ast.Module, schema any) (*ast.Compiler, error) {
	if err := checkData(modules); err != nil {
		return nil, err
	}
	schemas := ast.NewSchemaSet()
	schemas.Put(ast.SchemaRootRef, schema)
	c := ast.NewCompiler().
		WithCapabilities(sandbox()).
		WithDefaultRegoVersion(ast.RegoV1).
		WithSchemas(schemas).
		WithUseTypeCheckAnnotations(false)
	c.Compile(modules)
	if c.Failed() {
		return nil, explain(c.Errors)
	}
	return c, nil
}

// checkData refuses references to data that no module defines. There is no
// such data, so that they would be undefined, whatever their author expected.
func checkData(modules map[string]*ast.Module) error {
	var found Errors
	own := func(ref ast.Ref) bool {
		for _, m := range modules {
			if ref.HasPrefix(m.Package.Path) {
				return true
			}
		}
		return false
	}
	for _, m := range modules {
		ast.WalkRefs(m, func(ref ast.Ref) bool {
			if ref.HasPrefix(ast.DefaultRootRef) && !own(ref) && len(found) < maxErrors {
				found = append(found, mistake(ref[0].Location, "%v is not defined here: a module sees only the input and its own package, %v", ref, m.Package.Path))
			}
			return false
		})
	}
	if len(found) > 0 {
		return found
	}
	return nil
}

// noData is the empty document that every query runs over, in one transaction
// that is never closed: nothing is ever written.
func noData(ctx context.Context) (storage.Store, storage.Transaction, error) {
	store := inmem.New()
	txn, err := store.NewTransaction(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("opening an empty document: %w", err)
	}
	return store, txn, nil
}

// prepared is a query whose answer is one value. It can be asked by any number
// of goroutines at once.
type prepared struct {
	query rego.PreparedEvalQuery
	txn   storage.Transaction
}

// prepare readies the question for the value of a term.
func prepare(c *ast.Compiler, term string) (*prepared, error) {
	body, err := ast.ParseBodyWithOpts(term, parserOptions())
	if err != nil {
		return nil, explain(err)
	}
	ctx := context.Background()
	store, txn, err := noData(ctx)
	if err != nil {
		return nil, err
	}
	q, err := rego.New(
		rego.Compiler(c),
		rego.Store(store),
		rego.Transaction(txn),
		rego.ParsedQuery(body),
		rego.StrictBuiltinErrors(true),
		rego.Capabilities(sandbox()),
		rego.GenerateJSON(func(t *ast.Term, _ *rego.EvalContext) (any, error) { return t.Value, nil }),
	).PrepareForEval(ctx)
	if err != nil {
		return nil, fmt.Errorf("preparing %s: %w", term, explain(err))
	}
	return &prepared{query: q, txn: txn}, nil
}

// ask returns the document's value, or nil where it is undefined. limit ends it.
func (p *prepared) ask(input ast.Value, limit *deadline) (ast.Value, error) {
	results, err := p.query.Eval(context.Background(),
		rego.EvalParsedInput(input),
		rego.EvalExternalCancel(limit),
		rego.EvalTransaction(p.txn),
		rego.EvalTime(epoch()),
		rego.EvalMetrics(metrics.NoOp()),
	)
	if err != nil || len(results) == 0 {
		return nil, err
	}
	v, ok := results[0].Expressions[0].Value.(ast.Value)
	if !ok {
		return nil, fmt.Errorf("OPA answered with a %T", results[0].Expressions[0].Value)
	}
	return v, nil
}
