package rego

import (
	"runtime"
	"strings"
	"testing"

	"writ.example/writ/bench/corpus"
	"writ.example/writ/engine"
)

// TestSize compares sizes with the memory that is used. A cache is bounded by bytes, so a size must
// not be far below the truth.
func TestSize(t *testing.T) {
	tests := []struct {
		name  string
		build func() (any, int, error)
	}{
		{"a short condition", func() (any, int, error) {
			c, err := CompileCondition("true")
			return c, c.Size(), err
		}},
		{"a long condition", func() (any, int, error) {
			c, err := CompileCondition(strings.Repeat("input.intent.cost.amount_minor > 5000\n", 100))
			return c, c.Size(), err
		}},
		{"a policy", func() (any, int, error) {
			q, err := Prepare(corpus.ReferencePolicy(), nil, nil)
			return q, q.Size(), err
		}},
		{"a policy with 100 rules", func() (any, int, error) {
			q, err := Prepare(corpus.ReferencePolicy(), corpus.Rules(100, 1), nil)
			return q, q.Size(), err
		}},
	}
	for name, data := range map[string]string{
		"numbers": "[" + strings.Repeat("1,", 100_000) + "1]", "texts": "[" + strings.Repeat(`"abcdefgh",`, 50_000) + "1]",
		"objects": "[" + strings.Repeat(`{"max":10,"who":["a","b"]},`, 20_000) + "1]",
	} {
		tests = append(tests, struct {
			name  string
			build func() (any, int, error)
		}{"a document of " + name, func() (any, int, error) {
			l := engine.CompileLists([]engine.List{jsonList("l", data)})["l"]
			_, err := documentOf(l)
			return l, l.Size(), err
		}})
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var kept [8]any
			size := 0
			before := heap()
			for i := range kept {
				var err error
				if kept[i], size, err = tt.build(); err != nil {
					t.Fatal(err)
				}
			}
			took := (heap() - before) / len(kept)
			runtime.KeepAlive(kept)
			if size*4 < took*3 || size > took*2 {
				t.Errorf("Size() = %d, but it takes %d", size, took)
			}
		})
	}
}

// heap returns how many bytes of the heap are in use.
func heap() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
