package rego

import (
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"

	"writ.example/writ/engine/condition"
)

func parserOptions() ast.ParserOptions {
	return ast.ParserOptions{Capabilities: sandbox(), RegoVersion: ast.RegoV1, ProcessAnnotation: true}
}

// compile compiles modules. Their keys are file names. schema is the JSON schema of the input. The
// modules can refer only to one another and to the input.
func compile(modules map[string]*ast.Module, schema any) (*ast.Compiler, error) {
	if err := checkData(modules); err != nil {
		return nil, err
	}
	c := newCompiler(sandbox(), schema)
	c.Compile(modules)
	if c.Failed() {
		return nil, explain(c.Errors)
	}
	return c, nil
}

func newCompiler(functions *ast.Capabilities, schema any) *ast.Compiler {
	schemas := ast.NewSchemaSet()
	schemas.Put(ast.SchemaRootRef, schema)
	return ast.NewCompiler().
		WithCapabilities(functions).
		WithDefaultRegoVersion(ast.RegoV1).
		WithSchemas(schemas).
		WithUseTypeCheckAnnotations(false)
}

// checkData refuses references to data that no module defines, because such data is silently
// undefined. Data below one of the given names is accepted.
func checkData(modules map[string]*ast.Module, given ...string) error {
	var found condition.Error
	own := func(ref ast.Ref) bool {
		if len(ref) > 1 {
			if name, ok := ref[1].Value.(ast.String); ok && slices.Contains(given, string(name)) {
				return true
			}
		}
		for _, m := range modules {
			if ref.HasPrefix(m.Package.Path) {
				return true
			}
		}
		return false
	}
	sees := "a module sees only the input and its own package"
	if slices.Contains(given, listsRule) {
		sees = "a rule sees only the input, data.lists.<name>, data.lib.<name> and its own package"
	}
	for _, m := range modules {
		ast.WalkRefs(m, func(ref ast.Ref) bool {
			if ref.HasPrefix(ast.DefaultRootRef) && !own(ref) {
				found.Add(mistake(ref[0].Location, "%v is not defined here: %s, %v", ref, sees, m.Package.Path))
			}
			return false
		})
	}
	return found.Err()
}
