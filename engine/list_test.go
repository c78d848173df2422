package engine

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ.example/writ/engine/condition"
)

func TestList_Texts(t *testing.T) {
	for data, want := range map[string][]string{
		`["b","a"]`: {"b", "a"}, `[]`: {}, `["a",""]`: nil, `["a",1]`: nil, `{}`: nil, `"a"`: nil, `7`: nil, `true`: nil,
		`["` + strings.Repeat("x", condition.MaxLabel+1) + `"]`: nil,
	} {
		l := List{Name: "l", Data: []byte(data)}
		got, ok := l.Texts()
		if ok != (want != nil) || ok && !slices.Equal(got, want) {
			t.Errorf("Texts of %.40s = %q, %v, want %q", data, got, ok, want)
		}
	}
}

func TestListOf(t *testing.T) {
	for content, want := range map[string]List{
		`["b","a"]`: {Name: "l", Values: []string{"b", "a"}}, `[]`: {Name: "l", Values: []string{}},
		`["a",""]`: {Name: "l", Values: []string{"a", ""}}, // which Validate refuses
		`["a",1]`:  {Name: "l", Data: []byte(`["a",1]`)}, `{}`: {Name: "l", Data: []byte(`{}`)},
	} {
		if diff := cmp.Diff(want, ListOf("l", []byte(content))); diff != "" {
			t.Errorf("ListOf(%s): %s", content, diff)
		}
	}
}

func TestList_Len(t *testing.T) {
	for data, want := range map[string]int{`[[1,2],"x"]`: 2, `[]`: 0, `{"a":{"b":1,"c":2},"d":[]}`: 2, `{}`: 0, `"abc"`: 1} {
		l := List{Name: "l", Data: []byte(data)}
		if got := l.Len(); got != want {
			t.Errorf("Len of %s = %d, want %d", data, got, want)
		}
	}
}

// TestList_Size checks that each value of a document counts, not only its bytes.
func TestList_Size(t *testing.T) {
	l := List{Name: "l", Data: []byte("[" + strings.Repeat("1,", 99_999) + "1]")}
	if got := l.Size(); got < 5_000_000 {
		t.Errorf("Size of 100,000 numbers = %d, want at least 5,000,000", got)
	}
}

// FuzzList_Data checks that a valid document stays the same document when it is normalised, and that it is
// valid then.
func FuzzList_Data(f *testing.F) {
	for _, s := range []string{`{"b":1,"a":[1.50,"é"]}`, `[1,{"a":null}]`, `9007199254740992`, `-9007199254740991`, `1e-400`,
		`{"a":1,"a":2}`, `"\ud800"`, ``, `[1] 2`, `["a","b"]`, strings.Repeat("[", 65) + strings.Repeat("]", 65), `{"\u0061":1,"a":2}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		l := List{Name: "l", Data: slices.Clone(data)}
		if len(data) == 0 || l.Validate() != nil {
			return
		}
		l.Normalize()
		again := List{Name: "l", Data: slices.Clone(l.Data)}
		if err := again.Validate(); err != nil {
			t.Fatalf("%s is valid, but not %s: %v", data, l.Data, err)
		}
		if again.Normalize(); string(again.Data) != string(l.Data) {
			t.Errorf("%s becomes %s, and that %s", data, l.Data, again.Data)
		}
		if l.Size() < len(l.Data) || l.Len() < 0 {
			t.Errorf("%s has the size %d and the length %d", data, l.Size(), l.Len())
		}
		if texts, ok := l.Texts(); ok && len(texts) != l.Len() {
			t.Errorf("%s has the texts %s and the length %d", data, fmt.Sprint(texts), l.Len())
		}
	})
}
