package scrub

import (
	"bytes"
	"crypto/sha256"
	"slices"
	"strings"
	"testing"

	"writ.example/writ/internal/scrub/scrubtest"
)

// TestIdentity_Example checks the example in the package documentation.
func TestIdentity_Example(t *testing.T) {
	key := make([]byte, sha256.Size)
	for i := range key {
		key[i] = byte(i)
	}
	g, err := newScrubber(t).Tagger(key)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := g.Identity("bot/ann@corp.test"), "bot/[email-address:AWYD7NCFU4LAQJTJ]"; got != want {
		t.Errorf("Identity = %q, want %q", got, want)
	}
}

func TestIdentity(t *testing.T) {
	g := newTagger(t)
	token := "gh" + "p_9fKq2LmX7wZb4Rt8Yv1Nc6Hd3Jg5Ps0Aq2We"
	for text, want := range map[string]string{
		"":                              "",
		"team-a/deployer":               "team-a/deployer",
		"ann@corp.test":                 "[email-address:…]",
		"bot-ann@corp.test-1":           "[email-address:…]-1",
		"4111 1111 1111 1111":           "[card-number:…]",
		"ci/" + token:                   "ci/[github-pat:…]",
		token + "/ann@corp.test":        "[github-pat:…]/[email-address:…]",
		"ann%40corp.test":               "[email-address:…]",
		"4%25252531%2525253111":         "[unreadable:…]",
		"https://u:pw@h/x":              "https://[userinfo:…]@h/x",
		"noreply@example.com":           "noreply@example.com",
		"[x:ABCDEFGHIJKLMNOP]/a@b.test": "[x:ABCDEFGHIJKLMNOP]/[email-address:…]",
		"[a:5555555555554444]":          "[a:[card-number:…]]",
	} {
		got := g.Identity(text)
		plain := strings.Replace(shape(got), "[x:…]", "[x:ABCDEFGHIJKLMNOP]", 1)
		if plain != want {
			t.Errorf("Identity(%q) = %q, want %q", text, got, want)
		}
	}
}

// TestIdentity_NeverMergesTwo checks many values that look alike. Equal values stay
// equal, any two different values stay different, and a filter for a value finds its
// rows.
func TestIdentity_NeverMergesTwo(t *testing.T) {
	g, other := newTagger(t), newTagger(t, 2)
	all := []string{
		"ann@corp.test", "bob@corp.test", "ann@corp.tesT", "Ann@corp.test", "ann%40corp.test", "ann@corp.test ", "x ann@corp.test",
		"ann@corp.test,bob@corp.test", "bob@corp.test,ann@corp.test", "u:pw@h", "u:pw2@h", "v:pw@h", "4111111111111111",
		"4111 1111 1111 1111", "4111-1111-1111-1111", "5555555555554444", "ａnn@corp.test", "ann&#64;corp.test",
		"4%25252531%2525253111", "4%25252531%2525253112", "bot", "[redacted:email-address]", "[email-address]", "[email-address:]",
	}
	for seed := range uint64(2) {
		for _, c := range scrubtest.Canaries(seed) {
			all = append(all, spellings(c.Value)...)
		}
	}
	slices.Sort(all)
	seen := make(map[string]string)
	for _, text := range slices.Compact(all) {
		got := g.Identity(text)
		if before, merged := seen[got]; merged {
			t.Errorf("%q and %q are both %q", before, text, got)
		}
		seen[got] = text
		if again := g.Identity(strings.Clone(text)); again != got {
			t.Errorf("Identity(%q) = %q, then %q", text, got, again)
		}
		if under := other.Identity(text); (under == got) != (got == text) {
			t.Errorf("Identity(%q) = %q under one key, %q under another", text, got, under)
		}
		if !slices.Contains(g.Spellings(text), got) {
			t.Errorf("Spellings(%q) = %q, want %q among them", text, g.Spellings(text), got)
		}
	}
}

// TestSpellings_TryAllKnownKeys checks that a filter finds rows that were written under
// an older key. A filter for the tag that a row shows finds the row too.
func TestSpellings_TryAllKnownKeys(t *testing.T) {
	const text = "ann@corp.test"
	old, now := newTagger(t, 1), newTagger(t, 2, 1)
	whole := func(g *Tagger) string { return g.keys[0].tag(KindUnread, text) }
	want := []string{text, now.Identity(text), whole(now), old.Identity(text), whole(old)}
	if got := now.Spellings(text); !slices.Equal(got, want) {
		t.Errorf("Spellings = %q, want %q", got, want)
	}
	shown := old.Identity(text)
	if got := now.Spellings(shown); !slices.Equal(got, []string{shown}) {
		t.Errorf("Spellings of the tag = %q, want it alone", got)
	}
	if got := now.Spellings("bot"); !slices.Equal(got, []string{"bot"}) {
		t.Errorf("Spellings of an ordinary id = %q, want it alone", got)
	}
}

// TestName_HidesWhatFoldingHides checks that the folded form of a name shows no secret of the name as
// it was sent, and that the history and shared windows find it under every known key.
func TestName_HidesWhatFoldingHides(t *testing.T) {
	old, now := newTagger(t, 1), newTagger(t, 2, 1)
	const key = "AKIA" + "QWERTYUIOP234567"
	for raw, folded := range map[string]string{
		"bot": "bot", "Bot": "bot", "ann@corp.test": "ann@corp.test", "Ann@CORP.test": "ann@corp.test", "ａnn@corp.test": "ann@corp.test",
		key: strings.ToLower(key), "x/" + key: "x/" + strings.ToLower(key), key + " Ann@corp.test": strings.ToLower(key) + " ann@corp.test",
		strings.ToLower(key): strings.ToLower(key),
	} {
		got := old.Name(raw, folded)
		secret := strings.Contains(raw, key) || strings.Contains(folded, "@")
		if shows := strings.Contains(got, strings.ToLower(key)) || strings.Contains(got, "@"); secret && shows {
			t.Errorf("Name(%q, %q) = %q, which shows the secret", raw, folded, got)
		}
		if !secret && got != folded {
			t.Errorf("Name(%q, %q) = %q, want %q", raw, folded, got, folded)
		}
		if all := now.Spellings(folded); !slices.Contains(all, got) {
			t.Errorf("Spellings(%q) = %q, want %q among them", folded, all, got)
		}
		stored := now.Stored(folded)
		if !slices.ContainsFunc(now.Stored(got), func(name string) bool { return slices.Contains(stored, name) }) {
			t.Errorf("Stored(%q) = %q, and Stored(%q) = %q: want one in common", got, now.Stored(got), folded, stored)
		}
		if secret && slices.Contains(stored, folded) {
			t.Errorf("Stored(%q) = %q, which shows the secret", folded, stored)
		}
	}
	if got := now.Stored("bot"); !slices.Equal(got, []string{"bot"}) {
		t.Errorf("Stored of an ordinary id = %q, want it alone", got)
	}
}

func TestTagged(t *testing.T) {
	g := newTagger(t)
	for text, want := range map[string]bool{
		"[email-address:ABCDEFGHIJKLMNOP]":       true,
		"x[[a:ABCDEFGHIJKLMN27]y":                true,
		"[[email-address:ABCDEFGHIJKLMNOP":       false,
		"[email-address:ABCDEFGHIJKLMNOPQ]":      false,
		"[email-address:ABCDEFGHIJKLMNO]":        false,
		"[email-address:abcdefghijklmnop]":       false,
		"[email-address:ABCDEFGHIJKLMNO1]":       false,
		"[Email:ABCDEFGHIJKLMNOP]":               false,
		"[:ABCDEFGHIJKLMNOP]":                    false,
		"[redacted:email-address]":               false,
		"private[0]":                             false,
		"https://[2001:db8::1]:8443/v1":          false,
		g.Identity("bot/ann@corp.test"):          true,
		"[a:ABCDEFGHIJKLMNO[b:ABCDEFGHIJKLMNO7]": true,
	} {
		if got := g.Tagged(text); got != want {
			t.Errorf("Tagged(%q) = %t, want %t", text, got, want)
		}
	}
}

// FuzzIdentity checks that scrubbing a text twice has the same result as scrubbing it
// once, and that two results are equal only if the texts are equal.
func FuzzIdentity(f *testing.F) {
	g := newTagger(f)
	for _, c := range scrubtest.Canaries(1) {
		f.Add(c.Value, "bot-"+c.Value)
	}
	f.Add("u:p@ann@corp.test:q@h", "jdbc:oracle:thin:scott/tiger@db;password=x@y.test")
	f.Add("token=[email-address:ABCDEFGHIJKLMNOP]", "a@b.test")
	f.Fuzz(func(t *testing.T, a, b string) {
		if g.Tagged(a) || g.Tagged(b) {
			return // refused
		}
		x, y := g.Identity(a), g.Identity(b)
		if (x == y) != (a == b) {
			t.Errorf("Identity(%q) = %q, Identity(%q) = %q", a, x, b, y)
		}
		if again := g.Identity(x); again != x {
			t.Errorf("Identity(%q) = %q: scrubbing twice differs from once", x, again)
		}
		r := g.Resource(a, a)
		if again := g.Resource(r, r); again != r {
			t.Errorf("Resource(%q) = %q: scrubbing twice differs from once", r, again)
		}
	})
}

func TestTagger_WantsKeys(t *testing.T) {
	s := newScrubber(t)
	key := bytes.Repeat([]byte{1}, sha256.Size)
	for name, test := range map[string]struct {
		keys [][]byte
		want string
	}{
		"none":  {nil, "no scrub key"},
		"short": {[][]byte{key, key[1:]}, "scrub key 2 has 31 bytes: want at least 32"},
	} {
		if _, err := s.Tagger(test.keys...); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: Tagger() = %v, want %q", name, err, test.want)
		}
	}
}
