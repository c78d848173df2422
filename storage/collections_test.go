package storage

import (
	"bytes"
	"cmp"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
)

// hostile are texts that a wrong encoding of keys would sort wrongly.
var hostile = []string{
	"", "\x00", "\x00\x00", "\x00\x01", "\x00\x02", "\x00\xff", "\x01", "\xff", "\xff\xff", "\xff\xff\xff\xff",
	"a", "a\x00", "a\x00\x01", "a\x00\xff", "a\x01", "a\xff", "aa", "ab", "a/b", "a:b", "b", "\x00\x01a", "\x00\x04acme",
	strings.Repeat("a", 255), strings.Repeat("a", 256), strings.Repeat("a", 257), strings.Repeat("\xff", 1000),
}

func TestVersionID_KeepsOrder(t *testing.T) {
	for _, a := range hostile {
		for _, b := range hostile {
			if got, want := cmp.Compare(VersionID(a, 1), VersionID(b, math.MinInt64)), cmp.Compare(a, b); a != b && got != want {
				t.Errorf("order of versions of %q and %q = %d, want %d", a, b, got, want)
			}
			if a != b && bytes.HasPrefix(Text(a), Text(b)) {
				t.Errorf("the key of %q begins with that of %q", a, b)
			}
		}
	}
	versions := []int64{math.MaxInt64, 300, 256, 255, 1, 0, -1, math.MinInt64}
	if !slices.IsSortedFunc(versions, func(a, b int64) int { return cmp.Compare(VersionID("", a), VersionID("", b)) }) {
		t.Errorf("VersionID does not put %v in that order", versions)
	}
}

func TestTime_KeepsOrder(t *testing.T) {
	times := []time.Time{{}, time.Unix(-1, 999), time.Unix(0, 0), time.Unix(0, 1), time.Unix(1<<33, 0)}
	if !slices.IsSortedFunc(times, func(a, b time.Time) int { return bytes.Compare(Time(a), Time(b)) }) {
		t.Errorf("Time does not put %v in that order", times)
	}
}

// TestEndOfVersions checks that EndOfVersions returns a position after every version of a
// policy and before the versions of the next policy.
func TestEndOfVersions(t *testing.T) {
	for _, a := range hostile {
		end := EndOfVersions(a)
		if string(end) <= VersionID(a, math.MinInt64) {
			t.Errorf("EndOfVersions of %q = %x, want it after all", a, end)
		}
		for _, b := range hostile {
			if b > a && string(end) > VersionID(b, math.MaxInt64) {
				t.Errorf("EndOfVersions of %q = %x, which is after a version of %q", a, end, b)
			}
		}
	}
}

// TestCollections_KindsAndIndexesAreStored checks that no kind or index changes its value,
// because stores contain these values.
func TestCollections_KindsAndIndexesAreStored(t *testing.T) {
	if got := []Index{ByID, ByAge, ByName, ByAlias, ByMaker, ByExpiry, ByOwnName, ByDue}; !slices.Equal(got, []Index{0, 1, 2, 3, 4, 5, 6, 7}) {
		t.Errorf("indexes = %v", got)
	}
	var kinds []byte
	for _, c := range Collections() {
		kinds = append(kinds, byte(c.Kind))
		if CollectionOf(c.Kind) != c {
			t.Errorf("CollectionOf(%q) is another", c.Kind)
		}
	}
	if string(kinds) != "pratsckdIweolSbvLfOgA" {
		t.Errorf("kinds = %q", kinds)
	}
	if CollectionOf('?') != nil || CollectionOf(EverythingChanged) != nil {
		t.Error("CollectionOf a kind that is none is not nil")
	}
}

// FuzzParse_Lists checks that a stored list of texts is read as JSON.
func FuzzParse_Lists(f *testing.F) {
	for _, value := range []string{
		`[]`, `["a"]`, `["a","b"]`, `["","é","a]","[",","]`, `null`, `[null]`, `["a",null]`, `[1]`, `["a",1]`, `[1,"a"]`, `[["a"]]`,
		`["a",["b"]]`, `[{"a":"b"}]`, `["a\"b"]`, `["\u0061"]`, ` [ "a" , "b" ] `, `"a"`, `{}`, `{"a":"b"}`, `true`, `["a"`, `[,"a"]`,
		"[\"\xff\"]", "[\"\x00\"]", `[]]`, `[""]`,
	} {
		f.Add([]byte(value))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		var want struct{ Modes []string }
		document := slices.Concat([]byte(`{"Modes":`), value, []byte(`}`))
		refused := json.Unmarshal(document, &want)
		got, err := Of[struct{ Modes []string }]{}.Parse(Document{Value: document})
		if (err != nil) != (refused != nil) || err == nil && !reflect.DeepEqual(*got, want) {
			t.Errorf("Parse(%s) = %q, %v, want %q, %v", document, got, err, want, refused)
		}
	})
}
