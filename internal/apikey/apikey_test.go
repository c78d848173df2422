package apikey

import (
	"regexp"
	"strings"
	"testing"
)

func TestDecision_Credentials_APIKeyFormat(t *testing.T) {
	var id [16]byte
	var secret [32]byte
	for i := range id {
		id[i] = 1
	}
	for i := range secret {
		secret[i] = 2
	}
	key, gotID := build(id, secret)
	const want = "writ_01tRy6czI6jAOLpZvq3hw1_0TWD4V5tkyUQGc5qXvlBDd2Fj97aqsMoBGJJjsttG4I4GQovr"
	if key != want {
		t.Errorf("build = %s, want %s", key, want)
	}
	if gotID != want[5:27] {
		t.Errorf("id = %s, want %s", gotID, want[5:27])
	}
}

func TestAPIKey_RoundTrip(t *testing.T) {
	seen := make(map[string]bool)
	for range 200 {
		key, id := New()
		got, err := Parse([]byte(key))
		if err != nil || string(got[:]) != id {
			t.Fatalf("Parse(%s) = %q, %v, want %q", key, got, err, id)
		}
		if len(key) != length || seen[id] {
			t.Fatalf("New = %s: length %d, want %d; id seen before: %v", key, len(key), length, seen[id])
		}
		seen[id] = true
	}
}

func TestAPIKey_ExtremesHaveFixedWidth(t *testing.T) {
	var zeroID, fullID [16]byte
	var zero, full [32]byte
	for i := range full {
		full[i] = 0xFF
		fullID[i%16] = 0xFF
	}
	for _, key := range []string{first(build(zeroID, zero)), first(build(fullID, full))} {
		if _, err := Parse([]byte(key)); err != nil || len(key) != length {
			t.Errorf("Parse(%s) = %v, length %d, want nil, %d", key, err, len(key), length)
		}
	}
}

func first[A, B any](a A, _ B) A { return a }

// A cut or mistyped key must be found too. An id alone is public.
func TestPattern(t *testing.T) {
	key, id := New()
	keys := regexp.MustCompile(Pattern)
	for text, want := range map[string]string{
		key: key, "x" + key + "?": key, key[:idEnd+2]: key[:idEnd+2], Prefix + id + key: key, Prefix + key[idEnd-1:]: Prefix + key[idEnd-1:],
		Prefix + id: "", key[:idEnd+1]: "", Mask(id, Hint(key)): "", "writ_bot": "", Prefix + id[:9] + "_" + key[30:60]: "",
	} {
		if got := keys.FindString(text); got != want {
			t.Errorf("the key in %s = %q, want %q", text, got, want)
		}
	}
}

func TestAPIKey_JunkIsRefusedWithoutALookup(t *testing.T) {
	key, _ := New()
	for name, bad := range map[string]string{
		"empty":       "",
		"prefix only": "writ_",
		"truncated":   key[:len(key)-1],
		"longer":      key + "0",
		"space":       key + " ",
		"prefix case": "WRIT_" + key[5:],
		"separator":   key[:idEnd] + "-" + key[idEnd+1:],
		"not base62":  strings.Replace(key, key[30:31], "é", 1)[:length],
		"NUL":         key[:40] + "\x00" + key[41:],
	} {
		t.Run(name, func(t *testing.T) {
			if id, err := Parse([]byte(bad)); err == nil {
				t.Errorf("Parse(%q) = %q, want an error", bad, id)
			}
		})
	}
	for i := range key {
		other := byte('0')
		if key[i] == other {
			other = '1'
		}
		if _, err := Parse([]byte(key[:i] + string(other) + key[i+1:])); err == nil {
			t.Errorf("Parse with byte %d changed = nil, want an error", i)
		}
	}
}

func TestAPIKey_MaskShowsNoSecret(t *testing.T) {
	key, id := New()
	masked := Mask(id, Hint(key))
	if want := "writ_" + id + "_…" + key[len(key)-4:]; masked != want {
		t.Errorf("Mask = %s, want %s", masked, want)
	}
	if strings.Contains(masked, key[idEnd+1:idEnd+9]) {
		t.Errorf("Mask = %s shows the secret of %s", masked, key)
	}
}

func FuzzParse(f *testing.F) {
	key, _ := New()
	f.Add(key)
	f.Add("writ_")
	f.Add(strings.Repeat("0", length))
	f.Fuzz(func(t *testing.T, s string) {
		id, err := Parse([]byte(s))
		if err != nil {
			if id != (ID{}) {
				t.Fatalf("Parse(%q) = %q with an error", s, id)
			}
			return
		}
		if len(s) != length || !strings.HasPrefix(s, Prefix+string(id[:])+"_") {
			t.Fatalf("Parse(%q) = %q, want a key of the fixed form", s, id)
		}
	})
}
