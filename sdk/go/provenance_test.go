package writ

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
)

// provenanceCase is a case of sdk/provenance.json, which all clients run.
type provenanceCase struct {
	Name    string              `json:"name"`
	Records map[string][]string `json:"records"`
	Session []struct {
		User   string          `json:"user"`
		Tool   string          `json:"tool"`
		Result json.RawMessage `json:"result"`
		Place  string          `json:"place"`
	} `json:"session"`
	Arguments map[string]any    `json:"arguments"`
	Facts     map[string]string `json:"facts"`
}

func provenanceCases(t testing.TB) []provenanceCase {
	text, err := os.ReadFile("../provenance.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Cases []provenanceCase `json:"cases"`
	}
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	return file.Cases
}

func TestProvenance_Cases(t *testing.T) {
	for _, c := range provenanceCases(t) {
		t.Run(c.Name, func(t *testing.T) {
			p := &Provenance{Records: c.Records}
			for _, s := range c.Session {
				if s.Tool == "" {
					p.User(s.User)
				} else if err := p.Result(s.Tool, s.Result, s.Place); err != nil {
					t.Fatal(err)
				}
			}
			got, err := p.Facts(c.Arguments)
			want := make(map[string]string)
			for name, sources := range c.Facts {
				want[SourceFact+name] = sources
			}
			if err != nil || !maps.Equal(got, want) {
				t.Errorf("Facts = %v, %v, want %v", got, err, want)
			}
		})
	}
}

// naive reports whether value stands in text, character by character.
func naive(text, value string) bool {
	t, v := []rune(fold(text)), []rune(fold(value))
	at := func(i int) bool { return i >= 0 && i < len(t) && joins(t[i]) }
	for i := range t {
		if len(v) == 0 || i+len(v) > len(t) || !slices.Equal(t[i:i+len(v)], v) || at(i-1) {
			continue
		}
		if end := i + len(v); !at(end) || (t[end] == '.' || t[end] == ':') && !at(end+1) {
			return true
		}
	}
	return false
}

// FuzzProvenance_Stands compares the search and the index with a search character by character.
func FuzzProvenance_Stands(f *testing.F) {
	for _, c := range provenanceCases(f) {
		for _, s := range c.Session {
			for _, v := range c.Arguments {
				if v, ok := v.(string); ok {
					f.Add(s.User, v)
				}
			}
		}
	}
	f.Fuzz(func(t *testing.T, text, value string) {
		if len(text) > maxWords {
			return
		}
		var p Provenance
		p.User(text)
		for _, way := range []string{"searched", "indexed"} {
			if got, want := p.words.stands(fold(value), anywhere), naive(text, value); got != want {
				t.Errorf("%s: %q stands in %q: %t, want %t", way, value, text, got, want)
			}
			p.words.grow()
		}
		if _, err := p.Facts(map[string]any{"v": value}); err != nil {
			t.Error(err)
		}
	})
}

// TestProvenance_Stands compares them over texts of few characters, in which values often stand.
func TestProvenance_Stands(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	text := func(n int) string {
		b := make([]rune, rng.IntN(n+1))
		for i := range b {
			b[i] = []rune("aAb.:, @1é")[rng.IntN(10)]
		}
		return string(b)
	}
	stood := 0
	for range 200_000 {
		var p Provenance
		words, value := text(12), text(4)
		p.User(words)
		got := p.words.stands(fold(value), anywhere)
		p.words.grow()
		if indexed := p.words.stands(fold(value), anywhere); got != naive(words, value) || indexed != got {
			t.Fatalf("%q stands in %q: %t, indexed %t, want %t", value, words, got, indexed, naive(words, value))
		}
		if got {
			stood++
		}
	}
	if stood < 3_000 {
		t.Errorf("only %d values stood", stood)
	}
}

func TestProvenance_DropsTheOldestResults(t *testing.T) {
	p := &Provenance{Records: map[string][]string{"contacts": {"*"}}}
	p.User("write to ana@ours.example")
	must(t, p.Result("contacts", []string{"eve@ours.example"}, ""))
	must(t, p.Result("read", "first-value", ""))
	filler := strings.Repeat("x ", maxResults/8)
	for range 4 {
		p.texts.grow()
		must(t, p.Result("read", filler, ""))
	}
	if p.texts.indexed != len(p.texts.texts)-1 {
		t.Errorf("%d of %d texts are indexed, want all but the last", p.texts.indexed, len(p.texts.texts))
	}
	must(t, p.Result("contacts", []string{"bob@ours.example"}, ""))
	got, err := p.Facts(map[string]any{
		"user": "ana@ours.example", "record": "bob@ours.example", "lost": "first-value", "gone": "eve@ours.example", "text": "x",
	})
	want := map[string]string{
		"fact.source.user": "user", "fact.source.record": "record", "fact.source.lost": "unknown",
		"fact.source.gone": "unknown", "fact.source.text": "unknown",
	}
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("Facts = %v, %v, want %v", got, err, want)
	}
	// Dropped results left nothing behind.
	if len(p.texts.spots) > 10 || p.kept > maxResults {
		t.Errorf("%d runs of texts and %d bytes are kept", len(p.texts.spots), p.kept)
	}
}

// TestProvenance_Indexes holds that texts which are searched often are indexed, and say the same.
func TestProvenance_Indexes(t *testing.T) {
	var p Provenance
	must(t, p.Result("read", "to eve@evil.test, and b", ""))
	for range often {
		for value, want := range map[string]string{"eve@evil.test": "text", "evil.test": "model", ",": "model"} {
			if got, err := p.Facts(map[string]any{"v": []string{value}}); err != nil || got["fact.source.v"] != want {
				t.Fatalf("Facts of %q = %v, %v, want %s", value, got, err, want)
			}
		}
	}
	if p.texts.indexed != 1 {
		t.Error("the text is not indexed")
	}
}

func TestProvenance_KeepsTheUsersWords(t *testing.T) {
	var p Provenance
	p.User("ana@ours.example")
	p.User(strings.Repeat("x", maxWords))
	for range 5 {
		must(t, p.Result("read", strings.Repeat("y ", maxResults/4), ""))
	}
	got, err := p.Facts(map[string]any{"to": "ana@ours.example, xyz"})
	if want := "user,unknown"; err != nil || got["fact.source.to"] != want {
		t.Errorf("Facts = %v, %v, want %s", got, err, want)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// BenchmarkProvenance_Facts measures a call with ten values against 1 MiB of results.
func BenchmarkProvenance_Facts(b *testing.B) {
	rng := rand.New(rand.NewPCG(3, 4))
	word := func() string {
		w := make([]byte, 3+rng.IntN(8))
		for i := range w {
			w[i] = byte('a' + rng.IntN(26))
		}
		return string(w)
	}
	var p Provenance
	p.User("pay bill.txt for ana@ours.example")
	last := ""
	for p.kept < 1<<20 {
		var text strings.Builder
		for text.Len() < 16<<10 {
			last = word() + " " + word()
			text.WriteString(last + " ")
		}
		if err := p.Result("read", text.String(), ""); err != nil {
			b.Fatal(err)
		}
	}
	arguments := map[string]any{
		"to": "ana@ours.example, bob@ours.example", "subject": "The bill of November", "phrase": last,
		"amount": 500, "path": "/srv/data/report.txt", "body": strings.Repeat(word()+" ", 3) + "," + word(),
	}
	for b.Loop() {
		if _, err := p.Facts(arguments); err != nil {
			b.Fatal(err)
		}
	}
}
