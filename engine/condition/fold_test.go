package condition

import (
	"testing"

	"golang.org/x/text/unicode/norm"
)

// TestDecision_Agents_FoldID checks that check 2 compares ids after NFKC and case folding,
// and without the invisible characters that an id may have.
func TestDecision_Agents_FoldID(t *testing.T) {
	for _, tt := range []struct{ id, want string }{
		{"", ""},
		{"team-a/agent_7@x.example", "team-a/agent_7@x.example"},
		{"Team-A/Agent", "team-a/agent"},
		{"ｂｏｔ", "bot"},
		{"\u212aim", "kim"},
		{"STRASSE", "strasse"},
		{"straße", "strasse"},
		{"cafe\u0301", "caf\u00e9"},
		{"ﬁx", "fix"},
		{"ΜΆΪΟΣ", "μάϊοσ"},
		{"ｂ\u200dｏ\ufe0fｔ", "bot"},
		{"ｅ\u200d\u0301", "\u00e9"},
		{"\uab70\u13f8", "\u13a0\u13f0"},
	} {
		if got := FoldID(tt.id); got != tt.want {
			t.Errorf("FoldID(%q) = %q, want %q", tt.id, got, tt.want)
		}
	}
	for r := rune(0); r < 0x1F000; r++ {
		s := string(r)
		got := FoldID(s)
		if again := FoldID(got); again != got {
			t.Errorf("FoldID(FoldID(%U)) = %q, want %q", r, again, got)
		}
		if plain := FoldID(foldCase(norm.NFKC.String(s))); plain != got {
			t.Errorf("FoldID(%U) = %q, after NFKC and case folding %q", r, got, plain)
		}
	}
	if n := testing.AllocsPerRun(100, func() { FoldID("team-a/agent_7@x.example") }); n != 0 {
		t.Errorf("FoldID of plain ASCII allocates %v times", n)
	}
}
