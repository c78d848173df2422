package writ_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// limitName is how a limit is called.
var limitName = regexp.MustCompile(`^([mM]ax|min)[A-Z]`)

// most is how many limits there may be.
const most = 60

// ordinary is the greatest number that a length is compared with for another reason
// than a limit: that of a form, such as the eight digits of a date.
const ordinary = 8

// TestLimits_StandInTheirPackagesList holds that each package has one list of limits,
// limits.go: a constant called like one stands there, and a length is compared with no
// number that has no name.
func TestLimits_StandInTheirPackagesList(t *testing.T) {
	elsewhere := map[string]string{ // a limit that follows from what its file defines
		"storage/history.go:MaxSkew":                "of the contract",
		"engine/condition/demand.go:MaxDirectories": "of the index",
	}
	found := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (path == "bench" || path == "tools" || path == "internal" || strings.HasSuffix(path, "test") || strings.HasPrefix(d.Name(), ".") && path != "."):
			return filepath.SkipDir
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GenDecl:
				if n.Tok != token.CONST {
					return true
				}
				for _, spec := range n.Specs {
					value, ok := spec.(*ast.ValueSpec)
					if !ok {
						continue
					}
					for _, name := range value.Names {
						if !limitName.MatchString(name.Name) {
							continue
						}
						found++
						if filepath.Base(path) != "limits.go" && elsewhere[filepath.ToSlash(path)+":"+name.Name] == "" {
							t.Errorf("%s: %s is not in the package's limits.go", files.Position(name.Pos()), name.Name)
						}
					}
				}
			case *ast.BinaryExpr:
				if number := comparedLength(n); number > ordinary {
					t.Errorf("%s: a length is compared with %d, which has no name in the package's limits.go", files.Position(n.Pos()), number)
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d limits", found)
	if found < 40 {
		t.Errorf("%d limits were found: the test looks at nothing", found)
	}
	if found > most {
		t.Errorf("%d limits, want at most %d: let one there is serve, or derive the new one from it", found, most)
	}
}

// comparedLength returns the number that a length is compared with, 0 where it is none.
func comparedLength(n *ast.BinaryExpr) int {
	switch n.Op {
	case token.LSS, token.LEQ, token.GTR, token.GEQ:
	default:
		return 0
	}
	for _, pair := range [][2]ast.Expr{{n.X, n.Y}, {n.Y, n.X}} {
		call, ok := pair[0].(*ast.CallExpr)
		if !ok {
			continue
		}
		switch f := call.Fun.(type) {
		case *ast.Ident:
			ok = f.Name == "len"
		case *ast.SelectorExpr:
			ok = f.Sel.Name == "RuneCountInString"
		}
		number, isNumber := pair[1].(*ast.BasicLit)
		if !ok || !isNumber {
			continue
		}
		if v, err := strconv.Atoi(number.Value); err == nil {
			return v
		}
	}
	return 0
}
