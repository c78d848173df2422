package receipt

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
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

// The order of RFC 8785 §3.2.3's example.
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
	back, err := Canonicalize([]byte(got))
	if err != nil || string(back) != got {
		t.Errorf("Canonicalize(AppendMap) = %s, %v, want %s", back, err, got)
	}
}

func TestAppendersAgreeWithCanonicalize(t *testing.T) {
	m := map[string]string{"k\x00": "\u0010", "😀": "a", "\uffff": "b", "é": "\"\\"}
	loose, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	want, err := Canonicalize(loose)
	if err != nil {
		t.Fatal(err)
	}
	if got := AppendMap(nil, m); string(got) != string(want) {
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

// RFC 8785 appendix B.
func TestNumbersOfRFC8785(t *testing.T) {
	for _, tc := range []struct {
		bits uint64
		want string
	}{
		{0x0000000000000000, "0"},
		{0x8000000000000000, "0"},
		{0x0000000000000001, "5e-324"},
		{0x8000000000000001, "-5e-324"},
		{0x7fefffffffffffff, "1.7976931348623157e+308"},
		{0xffefffffffffffff, "-1.7976931348623157e+308"},
		{0x4340000000000000, "9007199254740992"},
		{0xc340000000000000, "-9007199254740992"},
		{0x4430000000000000, "295147905179352830000"},
		{0x44b52d02c7e14af5, "9.999999999999997e+22"},
		{0x44b52d02c7e14af6, "1e+23"},
		{0x44b52d02c7e14af7, "1.0000000000000001e+23"},
		{0x444b1ae4d6e2ef4e, "999999999999999700000"},
		{0x444b1ae4d6e2ef4f, "999999999999999900000"},
		{0x444b1ae4d6e2ef50, "1e+21"},
		{0x3eb0c6f7a0b5ed8c, "9.999999999999997e-7"},
		{0x3eb0c6f7a0b5ed8d, "0.000001"},
		{0x41b3de4355555553, "333333333.3333332"},
		{0x41b3de4355555554, "333333333.33333325"},
		{0x41b3de4355555555, "333333333.3333333"},
		{0x41b3de4355555556, "333333333.3333334"},
		{0x41b3de4355555557, "333333333.33333343"},
		{0xbecbf647612f3696, "-0.0000033333333333333333"},
		{0x43143ff3c1cb0959, "1424953923781206.2"},
	} {
		f := math.Float64frombits(tc.bits)
		if got := string(appendFloat(nil, f)); got != tc.want {
			t.Errorf("appendFloat(%016x) = %s, want %s", tc.bits, got, tc.want)
		}
		got, err := Canonicalize([]byte(tc.want))
		if err != nil || string(got) != tc.want {
			t.Errorf("Canonicalize(%s) = %s, %v, want it unchanged", tc.want, got, err)
		}
	}
}

func TestCanonicalize(t *testing.T) {
	for _, tc := range []struct{ name, in, want string }{
		{"RFC 8785 §3.2.2", `{
			"numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
			"string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
			"literals": [null, true, false]
		}`, `{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}`},
		{"RFC 8785 §3.2.3", `{"\u20ac":5,"\r":1,"\ufb33":7,"1":2,"\ud83d\ude00":6,"\u0080":3,"\u00f6":4}`,
			"{\"\\r\":1,\"1\":2,\"\u0080\":3,\"ö\":4,\"€\":5,\"😀\":6,\"\ufb33\":7}"},
		{"nested objects", `{"b":{"d":1,"c":[{"f":1,"e":2}]},"a":{}}`, `{"a":{},"b":{"c":[{"e":2,"f":1}],"d":1}}`},
		{"empty array", " [ ] ", `[]`},
		{"negative zero", `-0`, `0`},
		{"negative zero with fraction", `-0.00e5`, `0`},
		{"largest safe integer", `9007199254740991`, `9007199254740991`},
		{"exponent", `1e3`, `1000`},
		{"underflow", `1e-400`, `0`},
		{"written U+FFFD", `"\ufffd\uFFFD\\ufffd` + "\ufffd\"", "\"\ufffd\ufffd\\\\ufffd\ufffd\""},
		{"top-level string", `"\ud83d\ude00"`, `"😀"`},
		{"same names at different levels", `{"a":{"a":{"a":1}}}`, `{"a":{"a":{"a":1}}}`},
	} {
		got, err := Canonicalize([]byte(tc.in))
		if err != nil || string(got) != tc.want {
			t.Errorf("%s: Canonicalize = %s, %v, want %s", tc.name, got, err, tc.want)
		}
	}
}

func TestCanonicalizeRefuses(t *testing.T) {
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
		{"unsafe integer", `9007199254740993`, "not a safe integer"},
		{"unsafe negative integer", `-9007199254740993`, "not a safe integer"},
		{"integer of a thousand digits", strings.Repeat("9", 1000), "out of range"},
		{"overflow", `1e400`, "out of range"},
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
		got, err := Canonicalize([]byte(tc.in))
		if err == nil || !strings.Contains(err.Error(), tc.because) {
			t.Errorf("%s: Canonicalize(%.40q) = %s, %v, want an error with %q", tc.name, tc.in, got, err, tc.because)
		}
	}
}

func FuzzCanonicalize(f *testing.F) {
	for _, seed := range []string{`{"b":[1,2.50,-0],"a":"\u20ac\ud83d\ude00"}`, `[1e21,1e-7,9007199254740991,295147905179352830000]`,
		"\"\u2028\\u0000\"", `{"\ufb33":1,"\ud83d\ude00":2}`, `{"a":1,"a":2}`, `null`, "\"\xff\""} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		once, err := Canonicalize(data)
		if err != nil {
			return
		}
		twice, err := Canonicalize(once)
		if err != nil || string(twice) != string(once) {
			t.Fatalf("Canonicalize(%q) = %q, but again = %q, %v", data, once, twice, err)
		}
		if !json.Valid(data) {
			t.Fatalf("Canonicalize(%q) takes what encoding/json calls invalid", data)
		}
		var in, out any
		if err := json.Unmarshal(data, &in); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(once, &out); err != nil {
			t.Fatalf("Canonicalize(%q) = %q: %v", data, once, err)
		}
		a, errA := json.Marshal(in)
		b, errB := json.Marshal(out)
		if errA != nil || errB != nil || strings.ReplaceAll(string(a), "-0", "0") != strings.ReplaceAll(string(b), "-0", "0") {
			t.Fatalf("Canonicalize(%q) = %q means something else: %s, %s", data, once, a, b)
		}
	})
}
