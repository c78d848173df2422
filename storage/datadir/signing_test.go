package datadir

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"writ.example/writ/storage/receipt"
)

// TestReplaceSigner_Notice checks which key signs at which time, over several replacements, and that each public key
// stays known.
func TestReplaceSigner_Notice(t *testing.T) {
	d := Dir(filepath.Join(t.TempDir(), "data"))
	first, _, err := d.ReplaceSigner("", Notice)
	if err != nil || first.Next != nil {
		t.Fatalf("the first key of a directory: %+v, %v, want one that signs at once", first, err)
	}
	second, _, err := d.ReplaceSigner("", Notice)
	if err != nil {
		t.Fatal(err)
	}
	read, err := ReadSigning(d.SigningKey())
	if err != nil {
		t.Fatal(err)
	}
	for at, want := range map[time.Duration]string{
		-time.Second: first.Key.KeyID(), 0: second.Next.KeyID(), time.Hour: second.Next.KeyID(),
	} {
		if got := read.At(second.From.Add(at)).KeyID(); got != want {
			t.Errorf("%v after the notice %s signs, want %s", at, got, want)
		}
	}
	if until := time.Until(read.From); until < Notice-time.Minute || until > Notice {
		t.Errorf("the new key signs in %v, want %v", until, Notice)
	}

	// A third key before the second has signed takes its place.
	third, trusted, err := d.ReplaceSigner("", Notice)
	if err != nil || third.Key.KeyID() != first.Key.KeyID() {
		t.Fatalf("a third key: %v, %s signs, want %s", err, third.Key.KeyID(), first.Key.KeyID())
	}
	for _, kid := range []string{first.Key.KeyID(), second.Next.KeyID(), third.Next.KeyID()} {
		if !slices.Contains(trusted.IDs(), kid) {
			t.Errorf("%s is not trusted", kid)
		}
	}

	// Once the third has signed, a fourth follows it.
	text, err := os.ReadFile(d.SigningKey())
	if err != nil {
		t.Fatal(err)
	}
	past := strings.Replace(string(text), third.From.Format(time.RFC3339), "2026-01-01T00:00:00Z", 1)
	if err := os.WriteFile(d.SigningKey(), []byte(past), 0o600); err != nil {
		t.Fatal(err)
	}
	if fourth, _, err := d.ReplaceSigner("", Notice); err != nil || fourth.Key.KeyID() != third.Next.KeyID() {
		t.Errorf("a fourth key: %v, %s signs, want %s", err, fourth.Key.KeyID(), third.Next.KeyID())
	}
	if s, _, err := d.Signer(""); err != nil || s.KeyID() != third.Next.KeyID() {
		t.Errorf("Signer: %v, %v, want %s", s, err, third.Next.KeyID())
	}
}

// TestParseSigning_Refuses checks that a file that is not as it was written is refused, and no key is quoted.
func TestParseSigning_Refuses(t *testing.T) {
	d := Dir(filepath.Join(t.TempDir(), "data"))
	for range 2 {
		if _, _, err := d.ReplaceSigner("", Notice); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(d.SigningKey())
	if err != nil {
		t.Fatal(err)
	}
	whole := string(data)
	key, next, _ := strings.Cut(whole, nextMark)
	for name, text := range map[string]string{
		"empty":           "",
		"two keys":        key + "\n" + key,
		"no time":         key + nextMark + "tomorrow" + nextEnd + key,
		"no colon":        key + strings.Replace(nextMark+next, nextEnd, "\n", 1),
		"no second key":   key + nextMark + "2026-11-28T09:00:00Z" + nextEnd,
		"a third key":     whole + nextMark + "2026-11-28T09:00:00Z" + nextEnd + key,
		"cut":             whole[:len(whole)-40],
		"text in between": key + "\nfrom now on" + nextMark + next,
	} {
		if s, err := parseSigning(text); err == nil {
			t.Errorf("%s: %+v, want an error", name, s)
		} else if secret := strings.Split(key, "\n")[1]; strings.Contains(err.Error(), secret) {
			t.Errorf("%s: the error quotes the key: %v", name, err)
		}
	}
}

// TestNewKey_HasAnIDThatIsNoFlag makes so many keys that some ids would begin with a hyphen: one of 64 does.
func TestNewKey_HasAnIDThatIsNoFlag(t *testing.T) {
	for range 1000 {
		key, err := newKey()
		if err != nil {
			t.Fatal(err)
		}
		if id := receipt.NewSigner(key).KeyID(); id[0] == '-' {
			t.Fatalf("the id of a key is %s", id)
		}
	}
}
