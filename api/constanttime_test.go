package api

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"strings"
	"testing"
)

// TestDecision_Credentials_SecretsAreComparedInConstantTime parses the source. It fails if a
// variable that is named like a secret or its hash is compared with ==, != or bytes.Equal. This
// package must compare with crypto/subtle. The libraries for operator tokens and for Stripe's
// webhooks compare with hmac.Equal.
func TestDecision_Credentials_SecretsAreComparedInConstantTime(t *testing.T) {
	files := token.NewFileSet()
	for _, dir := range []string{".", "../billing", "../cmd/writ"} {
		pkgs, err := fs.Glob(os.DirFS(dir), "*.go")
		must(t, err)
		for _, name := range pkgs {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(files, dir+"/"+name, nil, 0)
			must(t, err)
			ast.Inspect(file, func(n ast.Node) bool {
				for _, operand := range compared(n) {
					if secret := secretName(operand); secret != "" {
						t.Errorf("%s: %s is compared in a time that tells how much of it was right: use crypto/subtle", files.Position(n.Pos()), secret)
					}
				}
				return true
			})
		}
	}
}

// compared returns the operands of n if n is a comparison in variable time. It ignores a comparison
// with nil, "" or a length, because such a comparison reveals no secret.
func compared(n ast.Node) []ast.Expr {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		if (n.Op == token.EQL || n.Op == token.NEQ) && !isNothing(n.X) && !isNothing(n.Y) {
			return []ast.Expr{n.X, n.Y}
		}
	case *ast.CallExpr:
		if f, ok := n.Fun.(*ast.SelectorExpr); ok && (f.Sel.Name == "Equal" || f.Sel.Name == "Compare") {
			if pkg, ok := f.X.(*ast.Ident); ok && (pkg.Name == "bytes" || pkg.Name == "strings" || pkg.Name == "slices") {
				return n.Args
			}
		}
	}
	return nil
}

func isNothing(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name == "nil"
	case *ast.BasicLit:
		return true
	}
	return false
}

// secretName returns the name of e if e is named like a secret, or "". It ignores an index or slice
// of a key, such as the prefix: those parts are fixed or public.
func secretName(e ast.Expr) string {
	name := ""
	switch e := e.(type) {
	case *ast.Ident:
		name = e.Name
	case *ast.SelectorExpr:
		name = e.Sel.Name
	}
	for _, word := range []string{"secret", "hash", "signature", "token", "password", "mac"} {
		if lower := strings.ToLower(name); lower == word || strings.HasSuffix(lower, word) {
			return name
		}
	}
	return ""
}
