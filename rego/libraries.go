package rego

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
)

// A condition imports libraries as data.lib.<name>. The libraries of an organization are compiled
// once, in a compiler of their own. The compiler of a condition takes the types and the compiled
// rules from there: see [Libraries.link]. So a condition costs what its own source costs, however
// many import a library.
//
// A library runs in the sandbox of the condition, and its cost counts in the condition's budget. It
// refers to the input, to itself and to other libraries. It does not read input.lists, so that the
// lists of a rule stand in the rule. Neither a library nor a condition that imports one replaces
// anything but the input by `with`: the guards of a library are written before its callers exist.

// libraryRoot is the package above the packages of libraries.
const libraryRoot = "lib"

// libraries is the reference to the libraries.
var libraries = ast.DefaultRootRef.Append(ast.StringTerm(libraryRoot))

// Libraries are the compiled libraries of an organization. It implements [engine.Libraries]. The
// zero value has no libraries.
type Libraries struct {
	docs     []engine.Library
	byName   map[string]*library
	compiler *ast.Compiler
	// rules has the rules by their names, such as data.lib.net.private. In each all names are full.
	rules  map[string][]*ast.Rule
	meters *meters
	items  map[string]bool // the files that call writ.items
	size   int
}

// library is one of the libraries.
type library struct {
	name string
	// module has the rules of all modules, as their author wrote them.
	module *ast.Module
	// uses has the names of the libraries that it imports, directly and through others, sorted.
	uses []string
	// grown has the bounds of its rules: see [growth].
	grown map[string]int
	// reads says what its rules read. It has no demands.
	reads engine.RegoReads
}

// CompileLibraries compiles the libraries of an organization, as [engine.Options].CompileLibraries.
// A mistake is in the file that [engine.Library.File] names.
func CompileLibraries(docs []engine.Library) (engine.Libraries, error) {
	l, err := compileLibraries(docs)
	if err != nil {
		return nil, err
	}
	return l, nil
}

func compileLibraries(docs []engine.Library) (*Libraries, error) {
	l := &Libraries{docs: slices.Clone(docs), byName: make(map[string]*library, len(docs))}
	slices.SortFunc(l.docs, func(a, b engine.Library) int { return strings.Compare(a.Name, b.Name) })
	modules, err := l.parse()
	if err != nil {
		return nil, err
	}
	order, err := l.order()
	if err != nil {
		return nil, err
	}
	l.compiler = newCompiler(sandbox(), conditionSchema())
	l.keepRules()
	if l.compiler.Compile(modules); l.compiler.Failed() {
		return nil, explain(l.compiler.Errors)
	}
	found := checkDefined(l.compiler)
	found.Mistakes = append(found.Mistakes, l.misread()...)
	for _, lib := range order {
		found.Mistakes = append(found.Mistakes, l.checkBounds(lib)...)
	}
	if err := found.Err(); err != nil {
		return nil, err
	}
	l.items = make(map[string]bool)
	for file, m := range l.compiler.Modules {
		l.items[file] = callsItems(m)
		addReads(&l.byName[file[:strings.IndexByte(file, '/')]].reads, m)
	}
	l.meters = newMeters(l.compiler, new(Libraries), slices.Collect(maps.Values(modules))...)
	return l, nil
}

// keepRules makes the compiler fill rules.
func (l *Libraries) keepRules() {
	l.rules = make(map[string][]*ast.Rule)
	l.compiler.WithStageAfterID(ast.StageResolveRefs, ast.CompilerStageDefinition{
		Name: "KeepRules", MetricName: "keeprules", Stage: func(c *ast.Compiler) *ast.Error {
			for _, file := range slices.Sorted(maps.Keys(c.Modules)) {
				m := c.Modules[file]
				for _, of := range m.Rules {
					ref := of.Head.Ref()
					first := ast.StringTerm(string(ref[0].Value.(ast.Var)))
					name := m.Package.Path.Append(first).Concat(ref[1:]).String()
					l.rules[name] = append(l.rules[name], of.Copy())
				}
			}
			return nil
		}})
}

// parse parses the modules and fills byName.
func (l *Libraries) parse() (map[string]*ast.Module, error) {
	var found condition.Error
	modules := make(map[string]*ast.Module)
	for i := range l.docs {
		doc := &l.docs[i]
		lib := &library{name: doc.Name, module: &ast.Module{Package: &ast.Package{
			Path: libraries.Append(ast.StringTerm(doc.Name)),
		}}}
		l.byName[doc.Name] = lib
		l.size += compiledOverhead + compiledPerByte*doc.Size()
		for _, file := range doc.Files() {
			name := doc.File(file)
			m, err := parseLibrary(name, doc.Modules[file])
			if err == nil && !m.Package.Path.Equal(lib.module.Package.Path) {
				err = refuse(m.Package.Loc(), "the package is %s: want %s.%s", packageOf(m), libraryRoot, doc.Name)
			}
			if err != nil {
				if err := join(&found, explain(err)); err != nil {
					return nil, err
				}
				continue
			}
			modules[name] = m
			lib.module.Imports = append(lib.module.Imports, m.Imports...)
			lib.module.Rules = append(lib.module.Rules, m.Rules...)
		}
	}
	if err := found.Err(); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(modules)) {
		if err := join(&found, l.checkModule(modules[name])); err != nil {
			return nil, err
		}
	}
	return modules, found.Err()
}

// parseLibrary parses a module of a library. name is the name of its file.
func parseLibrary(name, source string) (*ast.Module, error) {
	if !packageClause.MatchString(source) {
		return nil, refuse(ast.NewLocation(nil, name, 1, 1), "the file has no module: begin it with package %s",
			libraryRoot+"."+name[:strings.IndexByte(name, '/')])
	}
	return ast.ParseModuleWithOpts(name, source, parserOptions())
}

// checkModule returns an error for each reference that a module of a library must not have.
func (l *Libraries) checkModule(m *ast.Module) error {
	var found condition.Error
	ast.WalkRefs(m, func(ref ast.Ref) bool {
		switch {
		case ref.HasPrefix(inputLists):
			found.Add(mistake(ref[0].Location,
				"a library does not read %v: take the list as an argument of a function, so that the rule names it",
				inputLists))
		case ref.HasPrefix(dataLists):
			found.Add(mistake(ref[0].Location,
				"a library does not read %v: take the document as an argument of a function, so that the rule names it",
				dataLists))
		case ref.HasPrefix(ast.DefaultRootRef) && !ref.HasPrefix(libraries):
			found.Add(mistake(ref[0].Location, "%v is not defined here: a library sees only the input and libraries",
				ref))
		}
		return false
	})
	if err := join(&found, onlyInput(m)); err != nil {
		return err
	}
	_, err := l.imported(m)
	if err := join(&found, err); err != nil {
		return err
	}
	return found.Err()
}

// onlyInput returns the mistakes of a module in which `with` replaces anything but the input.
func onlyInput(m *ast.Module) error {
	var found condition.Error
	ast.WalkWiths(m, func(w *ast.With) bool {
		if ref, ok := w.Target.Value.(ast.Ref); !ok || !ref.HasPrefix(ast.InputRootRef) {
			found.Add(mistake(w.Loc(), "with replaces only the input where libraries are used, not %v", w.Target))
		}
		return false
	})
	return found.Err()
}

// refersTo returns the names of the libraries that m refers to, sorted, with the place of the first
// reference to each. It also returns the references that name no library.
func refersTo(m *ast.Module) (names []string, at map[string]*ast.Location, vague []ast.Ref) {
	at = make(map[string]*ast.Location)
	ast.WalkRefs(m, func(ref ast.Ref) bool {
		if !ref.HasPrefix(libraries) {
			return false
		}
		if len(ref) > len(libraries) {
			if name, ok := ref[len(libraries)].Value.(ast.String); ok {
				if at[string(name)] == nil {
					at[string(name)] = ref[0].Location
				}
				return false
			}
		}
		vague = append(vague, ref)
		return false
	})
	return slices.Sorted(maps.Keys(at)), at, vague
}

// imported returns the names of the libraries that m refers to, sorted. A library that is not there is
// an error, and so is a reference that names none.
func (l *Libraries) imported(m *ast.Module) ([]string, error) {
	var found condition.Error
	names, at, vague := refersTo(m)
	for _, ref := range vague {
		found.Add(mistake(ref[0].Location, "%v must name one library, such as %v.net", ref, libraries))
	}
	for _, name := range names {
		if l.library(name) == nil {
			others := ""
			if known := l.names(); len(known) > 0 {
				others = ", only " + strings.Join(known, ", ")
			}
			found.Add(mistake(at[name], "there is no library %s%s", name, others))
		}
	}
	return names, found.Err()
}

func (l *Libraries) library(name string) *library {
	return l.byName[name]
}

func (l *Libraries) names() (names []string) {
	for _, doc := range l.Documents() {
		names = append(names, doc.Name)
	}
	return names
}

// order returns the libraries, each after those that it imports, and fills their uses. A cycle is an
// error.
func (l *Libraries) order() (sorted []*library, err error) {
	var found condition.Error
	done := make(map[string]bool)
	var visit func(lib *library, path []string)
	visit = func(lib *library, path []string) {
		if at := slices.Index(path, lib.name); at >= 0 {
			found.Add(mistake(ast.NewLocation(nil, l.fileOf(lib.name), 1, 1), "the libraries import each other: %s",
				strings.Join(append(path[at:], lib.name), " -> ")))
			return
		}
		if done[lib.name] {
			return
		}
		names, _ := l.imported(lib.module) // parse has checked it
		for _, name := range names {
			if name == lib.name {
				continue // a library may name itself in full
			}
			visit(l.byName[name], append(slices.Clone(path), lib.name))
			lib.uses = append(append(lib.uses, name), l.byName[name].uses...)
		}
		slices.Sort(lib.uses)
		lib.uses = slices.Compact(lib.uses)
		done[lib.name] = true
		sorted = append(sorted, lib)
	}
	for _, name := range l.names() {
		visit(l.byName[name], nil)
	}
	return sorted, found.Err()
}

// fileOf returns the name of the first file of a library.
func (l *Libraries) fileOf(name string) string {
	for i := range l.docs {
		if l.docs[i].Name == name {
			return l.docs[i].File(l.docs[i].Files()[0])
		}
	}
	return ""
}

// checkBounds returns the mistakes in the patterns and the growth of a library, and fills its grown.
// The libraries that it imports come first.
func (l *Libraries) checkBounds(lib *library) []condition.Mistake {
	found := condition.Error{Mistakes: badPatterns(lib.module)}
	g := newGrowth(lib.module, l)
	lib.grown = make(map[string]int)
	for _, r := range lib.module.Rules {
		name, ok := r.Head.Ref()[0].Value.(ast.Var)
		if !ok {
			continue
		}
		if lib.grown[string(name)] = g.rule(name); lib.grown[string(name)] > maxGrowth {
			found.Add(grows(r))
		}
	}
	return found.Mistakes
}

// withUses returns names and the libraries that these import, sorted.
func (l *Libraries) withUses(names []string) (all []string) {
	for _, name := range names {
		all = append(append(all, name), l.byName[name].uses...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Documents implements [engine.Libraries].
func (l *Libraries) Documents() []engine.Library {
	return l.docs
}

// Imports implements [engine.Libraries].
func (l *Libraries) Imports(name string) []string {
	if lib := l.library(name); lib != nil {
		return lib.uses
	}
	return nil
}

// Size implements [engine.Libraries].
func (l *Libraries) Size() int { return l.size }

// compile compiles the module of a condition that imports the named libraries.
func (l *Libraries) compile(module *ast.Module, imports []string) (*ast.Compiler, error) {
	return l.compileWith(newCompiler(sandbox(), conditionSchema()), module, imports)
}

// compileWith is compile with a new compiler.
func (l *Libraries) compileWith(c *ast.Compiler, module *ast.Module, imports []string) (*ast.Compiler, error) {
	modules := map[string]*ast.Module{entry: module}
	given := []string{listsRule}
	if len(imports) > 0 {
		given = append(given, libraryRoot)
		l.link(c)
	}
	if err := checkData(modules, given...); err != nil {
		return nil, err
	}
	if c.Compile(modules); c.Failed() {
		return nil, explain(c.Errors)
	}
	if len(imports) == 0 {
		return c, nil
	}
	found := checkDefined(c)
	return c, found.Err()
}

// checkDefined returns the mistakes of references to rules that a library does not have. They would be
// undefined.
func checkDefined(c *ast.Compiler) (found condition.Error) {
	for _, name := range slices.Sorted(maps.Keys(c.Modules)) {
		ast.WalkRefs(c.Modules[name], func(ref ast.Ref) bool {
			const whole = 3 // data.lib.<name>
			if !ref.HasPrefix(libraries) || len(ref) == whole {
				return false
			}
			if _, ok := ref[whole].Value.(ast.String); ok && c.RuleTree.Find(ref[:whole+1]) == nil {
				found.Add(mistake(ref[0].Location, "%v is not defined", ref[:whole+1]))
			}
			return false
		})
	}
	return found
}

// link makes c use the compiled libraries. The tree of their rules is a part of c's tree only where a
// stage looks for the rules of others. The stages that change or index rules do not see it, because
// many compilers share it. c's types begin with the types of the libraries.
func (l *Libraries) link(c *ast.Compiler) {
	data := ast.DefaultRootDocument.Value
	after := func(stage ast.StageID, name string, f func(c *ast.Compiler)) {
		c.WithStageAfterID(stage, ast.CompilerStageDefinition{Name: name, MetricName: strings.ToLower(name),
			Stage: func(c *ast.Compiler) *ast.Error {
				f(c)
				return nil
			}})
	}
	attach := func(c *ast.Compiler) {
		c.RuleTree.Children[data].Children[ast.String(libraryRoot)] =
			l.compiler.RuleTree.Children[data].Children[ast.String(libraryRoot)]
	}
	detach := func(c *ast.Compiler) { delete(c.RuleTree.Children[data].Children, ast.String(libraryRoot)) }
	after(ast.StageCheckRuleConflicts, "LinkLibraries", func(c *ast.Compiler) {
		c.TypeEnv = l.compiler.TypeEnv
		attach(c)
	})
	after(ast.StageCheckDeprecatedBuiltins, "UnlinkLibraries", detach)
	after(ast.StageBuildRuleIndices, "RelinkLibraries", attach)
}

// importedBy returns the names of the libraries that a condition imports, sorted.
func (l *Libraries) importedBy(m *ast.Module) ([]string, error) {
	if isLibrary(m) {
		return nil, nil
	}
	names, err := l.imported(m)
	if err != nil || len(names) == 0 {
		return nil, err
	}
	return names, onlyInput(m)
}

// imports returns l for a condition that imports the named libraries, or no libraries for one that
// imports none.
func (l *Libraries) imports(names []string) *Libraries {
	if len(names) == 0 {
		return new(Libraries)
	}
	return l
}

// isLibrary reports whether m is in the package of a library. A condition in such a package, which
// can be older than libraries, imports none.
func isLibrary(m *ast.Module) bool { return m.Package.Path.HasPrefix(libraries) }

// Imports returns the names of the libraries that a condition refers to, sorted. A source with a
// mistake has none.
func Imports(source string) []string {
	if !strings.Contains(source, libraryRoot) {
		return nil
	}
	m, err := parseCondition(source)
	if err != nil || isLibrary(m) {
		return nil
	}
	names, _, _ := refersTo(m)
	return names
}

// join adds the mistakes of err to found. It returns any other error.
func join(found *condition.Error, err error) error {
	var bad *condition.Error
	if err != nil && !errors.As(err, &bad) {
		return err
	}
	if err != nil {
		for _, m := range bad.Mistakes {
			found.Add(m)
		}
	}
	return nil
}

// librariesOf returns the libraries of rules that [compileRules] has compiled.
func librariesOf(set *engine.RuleSet) *Libraries {
	if l, ok := set.Libraries().(*Libraries); ok {
		return l
	}
	return new(Libraries)
}

// writeLibraries writes the libraries that the rules of set import, directly and through others.
func (l *lowering) writeLibraries(set *engine.RuleSet) (files []File, err error) {
	used := make(map[string]bool)
	for _, r := range set.Rules() {
		for _, name := range r.Libraries() {
			used[name] = true
		}
	}
	for i := range l.libraries.docs {
		doc := &l.libraries.docs[i]
		if !used[doc.Name] {
			continue
		}
		for _, file := range doc.Files() {
			m, err := ast.ParseModuleWithOpts("", doc.Modules[file], parserOptions())
			if err != nil {
				return nil, explain(err) // cannot happen: the library has compiled
			}
			if l.libraries.items[doc.File(file)] {
				importItems(m, l.pkg+libraryPackage)
			}
			redirect(m, libraries, l.librariesAt())
			source, err := move(m, l.librariesAt().Append(ast.StringTerm(doc.Name)))
			if err != nil {
				return nil, fmt.Errorf("moving %s: %w", doc.File(file), err)
			}
			files = append(files, File{Name: libraryRoot + "_" + doc.Name + "_" + file, Source: string(source)})
		}
	}
	return files, nil
}

// librariesAt is the reference to the libraries of the policy.
func (l *lowering) librariesAt() ast.Ref {
	return ast.MustParseRef("data." + l.pkg).Append(ast.StringTerm(libraryRoot))
}

// callItems reports whether one of the named libraries calls writ.items.
func (l *Libraries) callItems(names []string) bool {
	return l.eachFile(names, func(file, _ string) bool { return l.items[file] })
}

// readTime reports whether one of the named libraries may read the time of the decision.
func (l *Libraries) readTime(names []string) bool {
	return l.eachFile(names, func(_, source string) bool { return strings.Contains(source, decidedAt) })
}

// eachFile reports whether f is true of a file of the named libraries.
func (l *Libraries) eachFile(names []string, f func(file, source string) bool) bool {
	for i := range l.docs {
		doc := &l.docs[i]
		for file, source := range doc.Modules {
			if slices.Contains(names, doc.Name) && f(doc.File(file), source) {
				return true
			}
		}
	}
	return false
}
