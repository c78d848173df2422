package receipt_test

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"writ.example/writ/storage/receipt"
)

func TestParseHead(t *testing.T) {
	_, _, head, keys := workedExample(t)
	data, err := json.Marshal(head)
	must(t, err)
	got, err := receipt.ParseHead(data)
	if err != nil || got != head || got.Verify(keys) != nil {
		t.Errorf("ParseHead(%s) = %+v, %v, want %+v, which verifies", data, got, err, head)
	}
	text := string(data)
	for name, bad := range map[string]string{
		"nothing":               "",
		"no object":             "[]",
		"two heads":             text + text,
		"another member":        strings.Replace(text, `{`, `{"jwk":{},`, 1),
		"a member twice":        strings.Replace(text, `{`, `{"seq":1,`, 1),
		"no kid":                strings.Replace(text, `"kid":`, `"id":`, 1),
		"an empty kid":          strings.Replace(text, head.KeyID, "", 1),
		"upper-case hex":        strings.Replace(text, "6578616d", "6578616D", 1),
		"a short chain":         strings.Replace(text, "6578616d", "657861", 1),
		"a padded signature":    strings.Replace(text, `","kid"`, `==","kid"`, 1),
		"a cut signature":       strings.Replace(text, `","kid"`, `x","kid"`, 1),
		"a line break in it":    strings.Replace(text, `","kid"`, `\n","kid"`, 1),
		"seq 0":                 strings.Replace(text, `"seq":1`, `"seq":0`, 1),
		"seq 1.0":               strings.Replace(text, `"seq":1`, `"seq":1.0`, 1),
		"a size beyond 32 bits": strings.Replace(text, `"size":2`, `"size":4294967296`, 1),
		"a time as a string":    strings.Replace(text, `"time":1800000000123`, `"time":"1800000000123"`, 1),
		"a null":                strings.Replace(text, `"size":2`, `"size":null`, 1),
	} {
		if bad == text {
			t.Errorf("%s: nothing was changed", name)
		}
		if h, err := receipt.ParseHead([]byte(bad)); !errors.Is(err, receipt.ErrMalformed) {
			t.Errorf("%s: ParseHead(%s) = %+v, %v, want %v", name, bad, h, err, receipt.ErrMalformed)
		}
	}
	for name, bad := range map[string]receipt.SignedHead{
		"no kid":        {Head: head.Head},
		"an unsafe seq": {Head: receipt.Head{Seq: math.MaxUint64}, KeyID: "k"},
	} {
		if data, err := json.Marshal(bad); err == nil {
			t.Errorf("%s: Marshal = %s, want an error", name, data)
		}
	}
}
