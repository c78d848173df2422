package api

import (
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
	key, gotID := makeKey(id, secret)
	const want = "writ_01tRy6czI6jAOLpZvq3hw1_0TWD4V5tkyUQGc5qXvlBDd2Fj97aqsMoBGJJjsttG4I4GQovr"
	if key != want {
		t.Errorf("makeKey = %s, want %s", key, want)
	}
	if gotID != want[5:27] {
		t.Errorf("id = %s, want %s", gotID, want[5:27])
	}
}

func TestAPIKey_RoundTrip(t *testing.T) {
	seen := make(map[string]bool)
	for range 200 {
		key, id := newKey()
		got, err := ParseKey(key)
		if err != nil || got != id {
			t.Fatalf("ParseKey(%s) = %q, %v, want %q", key, got, err, id)
		}
		if len(key) != keyLen || seen[id] {
			t.Fatalf("newKey = %s: length %d, want %d; id seen before: %v", key, len(key), keyLen, seen[id])
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
	for _, key := range []string{first(makeKey(zeroID, zero)), first(makeKey(fullID, full))} {
		if _, err := ParseKey(key); err != nil || len(key) != keyLen {
			t.Errorf("ParseKey(%s) = %v, length %d, want nil, %d", key, err, len(key), keyLen)
		}
	}
}

func first[A, B any](a A, _ B) A { return a }

func TestAPIKey_JunkIsRefusedWithoutALookup(t *testing.T) {
	key, _ := newKey()
	for name, bad := range map[string]string{
		"empty":       "",
		"prefix only": "writ_",
		"truncated":   key[:len(key)-1],
		"longer":      key + "0",
		"space":       key + " ",
		"prefix case": "WRIT_" + key[5:],
		"separator":   key[:keyIDEnd] + "-" + key[keyIDEnd+1:],
		"not base62":  strings.Replace(key, key[30:31], "é", 1)[:keyLen],
		"NUL":         key[:40] + "\x00" + key[41:],
	} {
		t.Run(name, func(t *testing.T) {
			if id, err := ParseKey(bad); err == nil {
				t.Errorf("ParseKey(%q) = %q, want an error", bad, id)
			}
		})
	}
	for i := range key {
		other := byte('0')
		if key[i] == other {
			other = '1'
		}
		if _, err := ParseKey(key[:i] + string(other) + key[i+1:]); err == nil {
			t.Errorf("ParseKey with byte %d changed = nil, want an error", i)
		}
	}
}

func TestAPIKey_MaskShowsNoSecret(t *testing.T) {
	key, id := newKey()
	masked := maskKey(id, keyHint(key))
	if want := "writ_" + id + "_…" + key[len(key)-4:]; masked != want {
		t.Errorf("maskKey = %s, want %s", masked, want)
	}
	if strings.Contains(masked, key[keyIDEnd+1:keyIDEnd+9]) {
		t.Errorf("maskKey = %s shows the secret of %s", masked, key)
	}
}

func FuzzParseKey(f *testing.F) {
	key, _ := newKey()
	f.Add(key)
	f.Add("writ_")
	f.Add(strings.Repeat("0", keyLen))
	f.Fuzz(func(t *testing.T, s string) {
		id, err := ParseKey(s)
		if err != nil {
			if id != "" {
				t.Fatalf("ParseKey(%q) = %q with an error", s, id)
			}
			return
		}
		if len(s) != keyLen || !strings.HasPrefix(s, keyPrefix+id+"_") {
			t.Fatalf("ParseKey(%q) = %q, want a key of the fixed form", s, id)
		}
	})
}
