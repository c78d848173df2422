package resource

import "testing"

// TestDecision_Resources_InvisibleCharacters checks that invisible and bidirectional characters
// are found: Cf, U+034F, U+115F-1160, U+17B4-17B5, U+180B-180F, U+3164, U+FE00-FE0F, U+FFA0 and
// U+E0100-E01EF. A joiner or variation selector after a non-ASCII character is ordinary.
func TestDecision_Resources_InvisibleCharacters(t *testing.T) {
	for _, r := range []rune{
		0xAD, 0x34F, 0x61C, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180B, 0x180C, 0x180D, 0x180E, 0x180F, 0x200B, 0x200C, 0x200D,
		0x200E, 0x202E, 0x2060, 0x2066, 0x3164, 0xFE00, 0xFE0F, 0xFEFF, 0xFFA0, 0xE0001, 0xE0020, 0xE0100, 0xE01EF,
	} {
		if got, found := FindInvisible("a" + string(r)); !IsInvisible(r) || !found || got != r {
			t.Errorf("U+%04X: IsInvisible = %t, FindInvisible = %U, %t, want it found", r, IsInvisible(r), got, found)
		}
	}
	for _, r := range []rune{' ', 'a', 0x7F, 'é', 0x350, 0x1161, 0x17B6, 0x3165, 0xFE10, 0x1F600, 0xE01F0} {
		if IsInvisible(r) {
			t.Errorf("IsInvisible(U+%04X) = true", r)
		}
	}
	for _, s := range []string{"", "agent-7", "नमस्\u200dते", "می\u200cخواهم", "\u2764\ufe0f\u200d\U0001f525", "葛\U000e0100"} {
		if r, found := FindInvisible(s); found {
			t.Errorf("FindInvisible(%q) = %U", s, r)
		}
	}
	for _, s := range []string{"\u200d", "a\u200dé", "1\ufe0f", "é\u200b", "é\u202e", "é\u034f"} {
		if _, found := FindInvisible(s); !found {
			t.Errorf("FindInvisible(%q) found nothing", s)
		}
	}
}
