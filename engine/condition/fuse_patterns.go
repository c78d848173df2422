package condition

import (
	"fmt"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
)

// constantPatterns returns the patterns of a call: one string or a list of them.
func constantPatterns(function string, arg interpreter.InterpretableV2) ([]string, error) {
	if c, ok := arg.(interpreter.InterpretableConst); ok {
		switch v := c.Value().(type) {
		case types.String:
			return []string{string(v)}, nil
		case traits.Lister:
			if list, ok := texts(v); ok {
				return list, nil
			}
		}
	}
	if l, ok := arg.(interpreter.InterpretableConstructor); ok && len(l.InitVals()) == 0 {
		return nil, nil
	}
	return nil, fmt.Errorf("%s: the patterns must be constants", function)
}

// fusePatterns compiles the patterns of a call.
func fusePatterns(p *Program, call interpreter.InterpretableCall) (interpreter.InterpretableV2, error) {
	name := call.Function()
	patterns, err := constantPatterns(name, call.Args()[0])
	if err != nil {
		return nil, err
	}
	op, _ := called(name)
	if src, f, ok := sourceOf(call.Args()[1]); ok && f.Kind == Text {
		asked, err := p.patterns(src, op, patterns)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		return &fused{call.ID(), asked}, nil
	}
	m, err := compileMatcher(op, patterns, p.side)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return matchComputed(call.ID(), call.Args()[1], m), nil
}

// ofComputed asks something of a computed text.
type ofComputed struct {
	id  int64
	arg interpreter.InterpretableV2
	ask func(f *Frame, s string) ref.Val
}

func matchComputed(id int64, arg interpreter.InterpretableV2, m matcher) *ofComputed {
	return &ofComputed{id, arg, func(f *Frame, s string) ref.Val { return f.match(m, s) }}
}

// ID implements [interpreter.Interpretable].
func (n *ofComputed) ID() int64 { return n.id }

// Eval implements [interpreter.Interpretable].
func (n *ofComputed) Eval(a interpreter.Activation) ref.Val { return n.Exec(interpreter.AsFrame(a)) }

// Exec implements [interpreter.InterpretableV2].
func (n *ofComputed) Exec(ef *interpreter.ExecutionFrame) ref.Val {
	switch v := n.arg.Exec(ef).(type) {
	case types.String:
		return n.ask(frameOf(ef.Activation), string(v))
	case *types.Err:
		return v
	default:
		return types.MaybeNoSuchOverloadErr(v)
	}
}
