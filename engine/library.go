package engine

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"writ.example/writ/engine/condition"
)

// Library is a named library of Rego. Conditions in Rego import it as data.lib.<name>.
type Library struct {
	Stored
	Name string `json:"name"`
	// Modules has the sources by file name. The package of each is lib.<name>.
	Modules map[string]string `json:"modules"`
	// Version is the number of different contents that the library has had so far. It starts at 1.
	Version   int64     `json:"version"`
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
}

const (
	// MaxLibraryModules is the greatest number of modules of a library. Each is parsed by itself.
	MaxLibraryModules = 32
	// MaxLibraryBytes is the greatest size of a library's sources together, in bytes. Compiling them
	// takes some 50 ms.
	MaxLibraryBytes = 64 << 10
)

// Libraries are the compiled libraries of an organization. They are compiled once for all
// conditions. They are safe for concurrent use.
type Libraries interface {
	// Compile compiles a condition as [Options].CompileRego does. The condition may import the
	// libraries.
	Compile(source string) (RegoCondition, error)
	// Documents returns the libraries in the order of their names. The slice must not be modified.
	Documents() []Library
	// Imports returns the names of the libraries that a library imports, directly and through others,
	// sorted.
	Imports(name string) []string
	// Size returns the approximate size of the libraries in memory, in bytes.
	Size() int
}

var (
	libraryName = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
	moduleName  = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]*(\.[a-z0-9_-]+)*\.rego$`)
)

// CheckLibraryName returns nil if name can be the name of a library: a name in Rego in lower case.
func CheckLibraryName(name string) error {
	if len(name) > condition.MaxName || !libraryName.MatchString(name) {
		return fmt.Errorf("the name of a library has 1 to %d characters of a-z, 0-9 and _, and begins with a letter",
			condition.MaxName)
	}
	return nil
}

// Validate reports every mistake in the library as an *[InvalidError]. It does not compile the
// modules.
func (l *Library) Validate() error {
	var p problems
	if err := CheckLibraryName(l.Name); err != nil {
		p.add("name", "%v", err)
	}
	switch {
	case len(l.Modules) == 0:
		p.add("modules", `is required: want at least one file with its source, such as {"net.rego": "package lib.net\n…"}`)
	case len(l.Modules) > MaxLibraryModules:
		p.add("modules", "has more than %d files", MaxLibraryModules)
		return p.err()
	}
	for _, file := range l.Files() {
		switch source := l.Modules[file]; {
		case len(file) > condition.MaxName || !moduleName.MatchString(file):
			p.add("modules",
				"the name of a file has 6 to %d characters of a-z, 0-9, _, - and ., and ends in .rego: got %.80q",
				condition.MaxName, file)
		case strings.HasSuffix(file, "_test.rego"):
			p.add("modules", "%s is a file of tests, which stay with their author: leave it out", file)
		case !utf8.ValidString(source):
			p.add(moduleField(file), "is not UTF-8")
		case strings.TrimSpace(source) == "":
			p.add(moduleField(file), "is empty: want a module that begins with package lib.%s", l.Name)
		}
	}
	if size := l.Size(); size > MaxLibraryBytes {
		p.add("modules", "has %d bytes, at most %d are allowed", size, MaxLibraryBytes)
	}
	return p.err()
}

// Files returns the names of the modules, sorted.
func (l *Library) Files() []string { return slices.Sorted(maps.Keys(l.Modules)) }

// Size returns the bytes of the modules and of their names.
func (l *Library) Size() (size int) {
	for file, source := range l.Modules {
		size += len(file) + len(source)
	}
	return size
}

// File returns the name of a module in the mistakes of a compilation, such as net/ranges.rego.
func (l *Library) File(module string) string { return l.Name + "/" + module }

// moduleField returns the field of a module in an error.
func moduleField(file string) string { return "modules." + file }

// Locate returns the mistakes in err, which [Options].CompileLibraries found, as mistakes in the
// fields of l. A mistake in another library, or in a rule, is one of the field modules.
func (l *Library) Locate(err error) error {
	var bad *condition.Error
	if !errors.As(err, &bad) {
		return err
	}
	var p problems
	for _, m := range bad.Mistakes {
		field := "modules"
		if file, ok := strings.CutPrefix(m.File, l.Name+"/"); ok {
			if _, mine := l.Modules[file]; mine {
				m.File, field = "", moduleField(file)
			}
		}
		p.addIn(field, m)
	}
	return p.err()
}

// brokenLibraries are stored libraries that no longer compile. A condition that imports one is an
// error.
type brokenLibraries struct {
	docs    []Library
	compile func(source string) (RegoCondition, error)
}

// Compile implements [Libraries].
func (b *brokenLibraries) Compile(source string) (RegoCondition, error) { return b.compile(source) }

// Documents implements [Libraries].
func (b *brokenLibraries) Documents() []Library { return b.docs }

// Imports implements [Libraries].
func (b *brokenLibraries) Imports(string) []string { return nil }

// Size implements [Libraries].
func (b *brokenLibraries) Size() int { return 0 }

// CompileStoredLibraries compiles libraries that were accepted before. If they no longer compile, the
// result has no library, and err says why. So the conditions that import one are errors, and the
// others hold.
func CompileStoredLibraries(docs []Library, o Options) (libraries Libraries, err error) {
	if len(docs) == 0 || o.CompileLibraries == nil {
		return nil, nil
	}
	libraries, err = o.CompileLibraries(docs)
	if err != nil {
		return &brokenLibraries{docs, o.CompileRego}, fmt.Errorf("compiling the libraries: %w", err)
	}
	return libraries, nil
}

// MayImport reports whether a condition may import a library. A condition with a backslash may spell
// the name with escapes.
func MayImport(doc string) bool { return strings.Contains(doc, "lib") || strings.Contains(doc, `\`) }

// Libraries returns the names of the libraries that the rule's condition imports, directly and
// through other libraries, sorted.
func (c *CompiledRule) Libraries() []string {
	if c.rego == nil {
		return nil
	}
	return c.rego.Libraries()
}

// Libraries returns the libraries with which the rules were compiled, or nil.
func (rs *RuleSet) Libraries() Libraries { return rs.libraries }
