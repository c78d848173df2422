package rego

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"

	"writ.example/writ/engine/condition"
	"writ.example/writ/internal/must"
)

// guarded are conditions in which a guard could change the result if it stood at the wrong place.
var guarded = []string{
	`not input.intent.metadata.absent`, `not input.intent.metadata[k]`, `not data.a.absent`, `not data.a.partial[9999]`, `not data.a.partial[0.001]`,
	`not data.a.table[i / 1000] == [i]`, `data.a.table[x] == [2]; x == 0.002`, `data.a.table[_][_] == 2`, `some x; data.a.pairs[[x, 4]]; x == 1`,
	`x := 1; y := [x, 2]; [x, z] = y; z == 2`, `[x, y] = [y, 1]; x == 1`, `{"a": [x]} = {"a": [3]}; x == 3`, `x := {"a": i}; x[_] == i`, `x := {"a": i}; x.a == i`,
	`every x in [1, 2] { x > 0 }`, `every k, x in {"a": 1} { k == "a"; x == 1 }`, `every x in [1, 2] { not x == 3 }`, `not every_positive`,
	`held with input.intent.metadata.env as "prod"`, `not held with input.intent.metadata.env as "dev"`, `x := "prod"; held with input.intent.metadata.env as x`,
	`data.a.held with input as {"intent": {"metadata": {"env": "prod"}}}`, `not data.a.partial[i / 1000] with input.intent.metadata.n as "0"`,
	`count(input.intent.metadata) == 2 with count as two`, `two(v) == 2`, `x := {p: q | some p in [1, 2]; q := [z | some z in [3, 4]; z > p]}; x == {1: [3, 4], 2: [3, 4]}`,
	`xs := [{"k": 1, "v": 2}, {"k": 1, "v": 3}]; some o in xs; g := [p.v | some p in xs; p.k == o.k]; g == [2, 3]`, `x := {1, 2}; x[y]; y == 2`, `x := {[1], [2]}; x[[y]]; y == 2`,
	`data.a.made == data.a.made`, `data.a.table == data.a.table`, `data.a.absent == data.a.absent`, `input.intent.metadata == input.intent.metadata`,
	`input.intent.metadata[p] == input.intent.metadata[q]; p != q`, `some p, q in input.intent.metadata; not p == q`, `f(3)[_] == 3`, `[y | y := f(i)[0]] == [i]`, `chain == 3`,
}

// TestGuards_ChangeNoResult compares conditions with and without guards and meters.
func TestGuards_ChangeNoResult(t *testing.T) {
	const more = `
every_positive if { every x in [1, -2] { x > 0 } }

absent if false

two(_) := 2

chain := 1 if absent

else := 3 if made[_] == 1
`
	defined, compared := 0, 0
	try := func(source string) {
		c, err := CompileCondition(source)
		if err != nil {
			return
		}
		module := must.Get(parseCondition(source))(t)
		plain := must.Get(compile(map[string]*ast.Module{entry: module}, conditionSchema()))(t)
		unguarded := must.Get(prepare(plain, module.Package.Path.Append(ast.StringTerm(entry)), 10))(t)
		var work condition.Work
		in := slowInput(5, 2, 3, &work)
		input := must.Get(conditionInput(in, nil))(t)
		got, gotErr := c.(*sandboxed).question.ask(input, inSteps(&work))
		if work.Left() == 0 {
			return // without guards it could take hours
		}
		want, wantErr := unguarded.ask(input, inTime(time.Now, time.Minute))
		compared++
		if want != nil {
			defined++
		}
		if !reflect.DeepEqual(got, want) || (gotErr == nil) != (wantErr == nil) {
			t.Errorf("%s\n= %v, %v, without guards %v, %v", source, got, gotErr, want, wantErr)
		}
	}
	for _, one := range guarded {
		source := fmt.Sprintf(helpers, values[0], references[0], one) + more
		if _, err := CompileCondition(source); err != nil {
			t.Errorf("%s: %v", one, err)
		}
		try(source)
	}
	for i, value := range values {
		for j, use := range uses {
			if (i+j)%8 != 0 && os.Getenv("WRIT_SOAK") == "" {
				continue
			}
			other := strings.Replace(references[(i+j)%len(references)], "w := ", "as_known := ", 1) + "\n\tw := same(as_known)"
			try(fmt.Sprintf(helpers, strings.Replace(value, "v := ", "known := ", 1)+"\n\tv := same(known)", other, use))
		}
	}
	if compared < 150 || defined < 15 {
		t.Errorf("%d conditions were compared, %d were defined: too few to tell anything", compared, defined)
	}
}
