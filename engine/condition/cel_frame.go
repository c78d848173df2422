package condition

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
)

// celFrame holds the parts of a frame that only CEL uses.
type celFrame struct {
	exec *interpreter.ExecutionFrame
	// boxed has the CEL values of the fields that an expression has read. Each value is made at
	// most once per evaluation.
	boxed [fieldCount]ref.Val
}

// Parent implements [interpreter.Activation].
func (f *Frame) Parent() interpreter.Activation { return nil }

// ResolveName implements [interpreter.Activation].
func (f *Frame) ResolveName(name string) (any, bool) {
	path, presence := strings.CutPrefix(name, presenceOfField)
	field, ok := fieldByPath(path)
	switch {
	case !ok:
		return nil, false
	case presence:
		return types.Bool(f.has(field.ID)), true
	}
	if f.cel.boxed[field.ID] == nil {
		f.cel.boxed[field.ID] = f.value(field.ID)
	}
	return f.cel.boxed[field.ID], true
}

// value returns the CEL value of a variable, or a CEL error if the intent lacks the field.
func (f *Frame) value(id FieldID) ref.Val {
	switch row := &fields[id]; {
	case id == AgentNames:
		return types.NewStringList(types.DefaultTypeAdapter, f.Names().Forms())
	case id == Metadata:
		values := types.NewStringStringMap(types.DefaultTypeAdapter, f.metadata)
		return &orderedMetadata{Mapper: values, metadata: f.metadata}
	case !f.has(id):
		return celFailure(FieldOf(id).missing())
	case row.kind == Time:
		at, ok := f.time(id)
		if !ok {
			return celFailure(errNoResult)
		}
		return types.Timestamp{Time: at}
	case row.kind == Bool:
		return types.Bool(f.numbers[id] != 0)
	case row.kind == Int:
		return types.Int(f.numbers[id])
	}
	return types.String(f.texts[id])
}

// orderedMetadata is the metadata as a CEL map. Macros walk this map in the order of its keys. A Go
// map has a different order each time. Then a macro that ends early would do a different amount of
// work each time. Near the limit of work, two evaluations of one intent could differ.
type orderedMetadata struct {
	traits.Mapper
	metadata map[string]string
	keys     traits.Lister // nil until a macro first walks the map: most conditions read keys by name
}

// Iterator implements [traits.Iterable].
func (m *orderedMetadata) Iterator() traits.Iterator {
	if m.keys == nil {
		m.keys = types.NewStringList(types.DefaultTypeAdapter, slices.Sorted(maps.Keys(m.metadata)))
	}
	return m.keys.Iterator()
}

// expression is a planned CEL expression. leaves has the planned leaves of its [Clause].
type expression struct {
	root   interpreter.InterpretableV2
	leaves []interpreter.InterpretableV2
	reasons
}

// reasons are the errors of an expression that name a metadata key. missing has the error of each key
// that the expression names, by CEL's text of the error. notDecimal names a key only if all comparisons
// with numbers read that key.
type reasons struct {
	missing    map[string]*EvalError
	notDecimal *EvalError
}

func reasonsOf(expr ast.Expr) reasons {
	r := reasons{missing: make(map[string]*EvalError)}
	decimals := make(map[Field]bool)
	for e := range parts(expr) {
		if f, ok := fieldOf(e); ok && f.isMetadata() {
			r.missing[errNoSuchKey.message+": "+f.Key] = f.missing()
		}
		if name, args := operandsOf(e); name == fnDecimalCompare {
			for _, arg := range args {
				if _, constant := textLiteral(arg); !constant {
					f, _ := fieldOf(arg) // the zero field for a computed text
					decimals[f] = true
				}
			}
		}
	}
	for f := range decimals {
		if len(decimals) == 1 {
			r.notDecimal = notDecimal(f)
		}
	}
	return r
}

func (n *expression) ask(f *Frame) result {
	if f.cel.exec == nil {
		f.cel.exec = &interpreter.ExecutionFrame{Activation: f}
	}
	switch v := n.root.Exec(f.cel.exec).(type) {
	case types.Bool:
		return is(bool(v))
	case *types.Err:
		why, ok := errors.AsType[*EvalError](v)
		switch {
		case ok && why == errNotDecimal:
			return failing(cmp.Or(n.notDecimal, why))
		case ok:
			return failing(why)
		}
		// CEL's error for a missing key has no type of its own. The text of the key may come from
		// the intent, so it is not repeated, unless the expression names that key.
		if why := n.missing[v.Error()]; why != nil {
			return failing(why)
		}
		if strings.HasPrefix(v.Error(), errNoSuchKey.message) {
			return failing(errNoSuchKey)
		}
	}
	return failing(errNoResult)
}

// celFailures maps each failure that does not depend on the intent to its CEL value.
var celFailures = map[*EvalError]ref.Val{
	ErrTooMuchWork: types.WrapErr(ErrTooMuchWork), errNotDecimal: types.WrapErr(errNotDecimal),
	errNoCost: types.WrapErr(errNoCost),
	errNoList: types.WrapErr(errNoList), errNoSide: types.WrapErr(errNoSide), errNoTexts: types.WrapErr(errNoTexts),
}

func celFailure(why *EvalError) ref.Val {
	if v, ok := celFailures[why]; ok {
		return v
	}
	return types.WrapErr(why)
}
