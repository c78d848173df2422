package receipt

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

func TestAppendString(t *testing.T) {
	for _, tc := range []struct{ in, want string }{
		{"", `""`},
		{"plain", `"plain"`},
		{`say "hi" \ there`, `"say \"hi\" \\ there"`},
		{"\b\t\n\f\r", `"\b\t\n\f\r"`},
		{"\x00\x01\x0b\x1f", `"\u0000\u0001\u000b\u001f"`},
		{"\x7f", "\"\x7f\""},
		{"</script>&", `"</script>&"`},
		{"\u2028\u2029", "\"\u2028\u2029\""},
		{"€ö😀", `"€ö😀"`},
		{"a\xffb", "\"a\uFFFDb\""},
		{"\xed\xa0\x80", "\"\uFFFD\uFFFD\uFFFD\""},
	} {
		if got := string(AppendString(nil, tc.in)); got != tc.want {
			t.Errorf("AppendString(%q) = %s, want %s", tc.in, got, tc.want)
		}
		if got := string(AppendString([]byte("x"), tc.in)); got != "x"+tc.want {
			t.Errorf("AppendString(x, %q) = %s, want x%s", tc.in, got, tc.want)
		}
	}
}

func TestAppendInt(t *testing.T) {
	for _, tc := range []struct {
		in   int64
		want string
	}{{0, "0"}, {-1, "-1"}, {maxSafeInt, "9007199254740991"}, {-maxSafeInt, "-9007199254740991"}} {
		if got := string(AppendInt(nil, tc.in)); got != tc.want {
			t.Errorf("AppendInt(%d) = %s, want %s", tc.in, got, tc.want)
		}
	}
}

func TestAppendStringsAndMap(t *testing.T) {
	if got := string(AppendStrings(nil, nil)); got != `[]` {
		t.Errorf("AppendStrings(nil) = %s, want []", got)
	}
	if got := string(AppendStrings(nil, []string{"b", "a"})); got != `["b","a"]` {
		t.Errorf(`AppendStrings(b, a) = %s, want ["b","a"]`, got)
	}
	if got := string(AppendMap(nil, nil)); got != `{}` {
		t.Errorf("AppendMap(nil) = %s, want {}", got)
	}
	got := string(AppendMap(nil, map[string]string{"b": "2", "a": "1", "": "0", "ab": "3"}))
	if want := `{"":"0","a":"1","ab":"3","b":"2"}`; got != want {
		t.Errorf("AppendMap = %s, want %s", got, want)
	}
}

// rfcSorted has the names of the example in RFC 8785 §3.2.3, in the order of that example.
var rfcSorted = []string{"\r", "1", "\u0080", "ö", "€", "😀", "\ufb33"}

func TestAppendMapSortsByUTF16(t *testing.T) {
	m := make(map[string]string)
	var want []byte
	for _, name := range rfcSorted {
		m[name] = name
		want = append(append(append(AppendString(want, name), ':'), AppendString(nil, name)...), ',')
	}
	got := string(AppendMap(nil, m))
	if wanted := "{" + strings.TrimSuffix(string(want), ",") + "}"; got != wanted {
		t.Errorf("AppendMap = %s, want %s", got, wanted)
	}
	if back := canonical(t, []byte(got)); back != got {
		t.Errorf("the canonical form of AppendMap = %s, want %s", back, got)
	}
}

// canonical returns the RFC 8785 form of a document, as another library writes it.
func canonical(t *testing.T, document []byte) string {
	t.Helper()
	v := jsontext.Value(bytes.Clone(document))
	must(t, v.Canonicalize())
	return string(v)
}

func TestAppendersAreCanonical(t *testing.T) {
	m := map[string]string{"k\x00": "\u0010", "😀": "a", "\uffff": "b", "é": "\"\\"}
	loose, err := json.Marshal(m)
	must(t, err)
	want := canonical(t, loose)
	if got := AppendMap(nil, m); string(got) != want {
		t.Errorf("AppendMap = %s, want %s", got, want)
	}
}

func TestAppendersDoNotAllocate(t *testing.T) {
	m := make(map[string]string)
	for i := range 32 {
		m["key-"+strconv.Itoa(i*7919)] = "välue\n"
	}
	list := slices.Collect(maps.Keys(m))
	r := benchReceipts(testSigner(1), 1)[0]
	p := examplePayload()
	dst := make([]byte, 0, 4096)
	for name, f := range map[string]func(){
		"AppendString":    func() { AppendString(dst, "a \"quoted\" € string") },
		"AppendInt":       func() { AppendInt(dst, maxSafeInt) },
		"AppendStrings":   func() { AppendStrings(dst, list) },
		"AppendMap":       func() { AppendMap(dst, m) },
		"AppendLeaf":      func() { r.AppendLeaf(dst) },
		"LeafHash":        func() { r.LeafHash() },
		"AppendCanonical": func() { p.AppendCanonical(dst) },
	} {
		if got := testing.AllocsPerRun(100, f); got != 0 {
			t.Errorf("%s allocates %v times, want 0", name, got)
		}
	}
	if got := testing.AllocsPerRun(100, func() { p.Digest() }); got != 1 {
		t.Errorf("Digest allocates %v times, want 1 (its result)", got)
	}
}

func TestParseJSONRefuses(t *testing.T) {
	for _, tc := range []struct{ name, in, because string }{
		{"empty", ``, "end of JSON input"},
		{"duplicate member", `{"a":1,"a":1}`, `duplicate member "a"`},
		{"duplicate by escape", `{"a":1,"\u0061":2}`, `duplicate member "a"`},
		{"invalid UTF-8", "\"\xff\"", "invalid UTF-8"},
		{"invalid UTF-8 in a name", "{\"\xc3\":1}", "invalid UTF-8"},
		{"encoded surrogate", "\"\xed\xa0\x80\"", "invalid UTF-8"},
		{"overlong", "\"\xc0\xaf\"", "invalid UTF-8"},
		{"byte order mark", "\xef\xbb\xbf1", "looking for beginning of value"},
		{"lone high surrogate", `"\ud83d"`, "lone surrogate"},
		{"lone surrogate after a written U+FFFD", `"\ufffd\\ufffd\ud83d"`, "lone surrogate"},
		{"lone surrogate in a name", `{"\ud83d":1}`, "lone surrogate"},
		{"lone low surrogate", `"\ude00"`, "lone surrogate"},
		{"high surrogate twice", `"\ud83d\ud83d"`, "lone surrogate"},
		{"high surrogate, then text", `"\ud83dx"`, "lone surrogate"},
		{"high surrogate, then another escape", `"\ud83d\n"`, "lone surrogate"},
		{"bad hex", `"\u00g0"`, "hexadecimal character escape"},
		{"short hex", `"\u00`, "hexadecimal character escape"},
		{"unknown escape", `"\x41"`, "string escape code"},
		{"raw control character", "\"\n\"", "in string literal"},
		{"unterminated string", `"a`, "end of JSON input"},
		{"leading zero", `01`, "after top-level value"},
		{"leading plus", `+1`, "looking for beginning of value"},
		{"bare minus", `-`, "numeric literal"},
		{"no fraction", `1.`, "after decimal point"},
		{"no integer part", `.5`, "looking for beginning of value"},
		{"no exponent", `1e+`, "exponent of numeric literal"},
		{"both signs in the exponent", `1e+-5`, "exponent of numeric literal"},
		{"NaN", `NaN`, "looking for beginning of value"},
		{"trailing comma in an array", `[1,]`, "looking for beginning of value"},
		{"trailing comma in an object", `{"a":1,}`, "object key string"},
		{"missing comma", `[1 2]`, "after array element"},
		{"missing colon", `{"a" 1}`, "after object key"},
		{"mismatched brackets", `[1}`, "after array element"},
		{"open object", `{"a":1`, "end of JSON input"},
		{"trailing data", `{} {}`, "after top-level value"},
		{"comment", `1 // one`, "after top-level value"},
		{"NUL after the value", "1\x00", "after top-level value"},
		{"upper-case literal", `True`, "looking for beginning of value"},
		{"short literal", `tru`, "in literal true"},
		{"too deep", strings.Repeat("[", 10_001), "max depth"},
		{"form feed as white space", "\f1", "looking for beginning of value"},
		{"no-break space", "\u00a01", "looking for beginning of value"},
	} {
		if got, err := parseJSON([]byte(tc.in)); err == nil || !strings.Contains(err.Error(), tc.because) {
			t.Errorf("%s: parseJSON(%.40q) = %v, %v, want an error with %q", tc.name, tc.in, got, err, tc.because)
		}
	}
}

// FuzzParseJSON compares parseJSON with another strict parser of I-JSON.
func FuzzParseJSON(f *testing.F) {
	for _, seed := range []string{
		`{"b":[1,2.50,-0],"a":"\u20ac\ud83d\ude00"}`, `[1e21,1e-7,9007199254740991,295147905179352830000]`, "\"\u2028\\u0000\"",
		`{"\ufb33":1,"\ud83d\ude00":2}`, `{"a":1,"a":2}`, `null`, "\"\xff\"", `"\ufffd\uFFFD\\ufffd"`, `{"a":{"a":{"a":1}}}`, " [ ] ",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, err := parseJSON(data); (err == nil) != jsontext.Value(data).IsValid() {
			t.Fatalf("parseJSON(%q): %v, but jsontext says valid: %t", data, err, err != nil)
		}
	})
}
