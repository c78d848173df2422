package glob

import (
	"reflect"
	"strings"
	"testing"

	"writ.example/writ/engine/resource"
)

// FuzzStarred checks that a pattern of literals, stars and question marks has the units that the glob library's own
// lexer gives it.
func FuzzStarred(f *testing.F) {
	for _, pattern := range []string{
		"", "a", "*", "**", "***", "****", "a*b", "a**b*", "?", "*?*", "a,b", "!a-b", "https://*.example.com/**", "é*世",
		"a?,*", "**?**", "\uFFFD*", "{a,b}", "db/{read,write}/*", "{a,b}-{c,d}", "{a,b}*", "*{a,b}", "{a*,b}", "{a*b,c?d}", "{a,}",
		"{a}", "{}", "a}", "{a", "{a,{b,c}}", "{a,b}}", "x,{a,b}", "{,}", "{!a,b-c}", "{a,b,c,d,e}{a,b,c,d,e}",
	} {
		f.Add(pattern)
	}
	f.Fuzz(func(t *testing.T, pattern string) {
		got, problem := parsePattern(pattern)
		want, refused := [][]unit(nil), checkPattern(pattern)
		if refused == "" {
			want, refused = expand(pattern)
		}
		if problem != refused || !reflect.DeepEqual(got, want) {
			t.Errorf("parsePattern(%q) = %v, %q; expand gives %v, %q", pattern, got, problem, want, refused)
		}
	})
}

// FuzzPlainPattern checks that every reader reads a plain pattern as it was written.
func FuzzPlainPattern(f *testing.F) {
	for _, pattern := range []string{
		"a", "db/orders/*", "DB/Orders/*", "https://*.internal.example.com/**", "https://api.example.com/v1/?", "http://a-b.c1/x@y:z/.env",
		"**/.env", "a/../b", "a//b", "./a", "a/.", "a./b", "mail/*@example.com", "*@example.com", "mailto:*@example.com", "C:/x", "c:x",
		"https://1.2.3.4/", "https://example.1/", "https://xn--a.b/", "https://a.xn-*/", "https://*1/", "https://a../", "https://a./",
		"https://A.b/", "https://a_b.c/", "https://-a.b-/*", "https://a:80/", "https://**", "https://a", "https://a?b/c", "/a/b", "/", "a/",
		"x;y", "a b", "a|b", "~a", "//a", "/*/a", "/??/c:/x", "*:*", "https*://a/b", "https://a/b;c", "https://a/b.", "https://*-/", "a&b=c",
		"https://" + strings.Repeat("a.", 124) + "*/b", "https://" + strings.Repeat("a.", 122) + "**.b/", "https://x**n-a/b", "https://?.b/?",
	} {
		f.Add(pattern, true)
		f.Add(pattern, false)
	}
	f.Fuzz(func(t *testing.T, pattern string, blocks bool) {
		side := resource.ForAllow
		if blocks {
			side = resource.ForBlock
		}
		alternatives, _ := plain(nil, pattern, side, maxSpelled)
		for _, alternative := range alternatives {
			units := alternative.all()
			text, wildcards, ok := lettered(units)
			written := alternative.text != "" && resource.IsPlainPattern(alternative.text, side)
			if !ok || !written && !resource.IsPlainPattern(text, side) {
				continue
			}
			readings, err := resource.ReadPattern(text, side)
			want, problem := spell(nil, readings, err, wildcards, side)
			if problem != "" || climbs(text) {
				t.Fatalf("%q of %q is plain, but refused: %s", text, pattern, problem)
			}
			got, _ := read(nil, alternative, side)
			if len(got) != 1 || len(want) != 1 || got[0].readers != want[0].readers || !reflect.DeepEqual(got[0].all(), want[0].all()) {
				t.Errorf("read(%q) = %v, want %v", text, got, want)
			}
		}
	})
}

// FuzzAddAction checks that an action type is compiled as its units are.
func FuzzAddAction(f *testing.F) {
	for _, t := range []string{"a", "a.*", "*.b", "a*b", "a**b", "*", "a*b*c", "a%b", "a*5", "a*25", "a%*5", "é*世", "**5"} {
		f.Add(t)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if checkActionType(text) != "" {
			return
		}
		got, want := builder{actions: true}, builder{actions: true}
		got.addAction(1, asWritten, text)
		want.add(1, spelling{readers: asWritten, units: actionUnits(text)})
		if !reflect.DeepEqual(got, want) {
			t.Errorf("addAction(%q) makes %+v, want %+v", text, got, want)
		}
	})
}

// FuzzAddText checks that a text is compiled as its units are, and that they are counted.
func FuzzAddText(f *testing.F) {
	for _, text := range []string{"a", "a*", "*b", "a*b", "a**b", "***", "*?", "a?", "?*", "a*b*c", "a*b?", "**a**", "é*世", "a***b*"} {
		f.Add(text, true)
		f.Add(text, false)
	}
	f.Fuzz(func(t *testing.T, text string, exact bool) {
		if text == "" || strings.ContainsAny(text, "%\uFFFD") {
			return
		}
		s := spelling{readers: resource.POSIX, exact: exact, text: text}
		units := s.all()
		if s.len() != len(units) {
			t.Errorf("the length of %q is %d, want %d", text, s.len(), len(units))
		}
		var got, want builder
		got.add(1, s)
		want.add(1, spelling{readers: resource.POSIX, units: units})
		if got, want := got.finish(), want.finish(); !reflect.DeepEqual(got, want) {
			t.Errorf("addText(%q) makes %+v, want %+v", text, got, want)
		}
	})
}
