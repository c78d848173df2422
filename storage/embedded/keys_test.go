package embedded

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/uuid"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
	"writ.example/writ/storage/registry"
)

// hostile has strings that a wrong encoding of keys would confuse.
var hostile = []string{
	"", "\x00", "\x00\x00", "\x00\x01", "\x00\x02", "\x00\xff", "\x01", "\xff", "\xff\xff", "\xff\xff\xff\xff",
	"a", "a\x00", "a\x00\x01", "a\x00\xff", "a\x01", "a\xff", "aa", "ab", "a/b", "a:b", "b", "\x00\x01a", "\x00\x04acme",
	strings.Repeat("a", 255), strings.Repeat("a", 256), strings.Repeat("a", 257), strings.Repeat("\xff", 1000),
}

// TestKeys_NoOrganizationInAnothersRange checks all pairs of hostile ids. No key of one
// organization may lie in the key range of the other.
func TestKeys_NoOrganizationInAnothersRange(t *testing.T) {
	for _, org := range hostile {
		prefix := documentsOf(&storage.Rules.Collection, org)
		for _, other := range hostile {
			for _, id := range hostile {
				k := documentKey(&storage.Rules.Collection, other, id)
				within := bytes.Compare(k, prefix) >= 0 && (prefix.end() == nil || bytes.Compare(k, prefix.end()) < 0)
				if within != (org == other) {
					t.Errorf("key of rule %q of %q within the range of %q = %t", id, other, org, within)
				}
			}
		}
	}
}

func TestKeys_MeterExample(t *testing.T) {
	want := []byte{0x6d, 0, 4, 'a', 'c', 'm', 'e', 0, 3, 0x17, 0x73}
	if got := meterKey("acme", 202611); !bytes.Equal(got, want) {
		t.Errorf("meterKey(acme, 202611) = %x, want %x as the package documentation says", got, want)
	}
}

// TestOrganizationIDTooLong checks that an organization id which is too long for a key is an error.
// Such an id must never lead to the key of another organization.
func TestOrganizationIDTooLong(t *testing.T) {
	s := openTest(t, vfs.NewMem(), nil)
	org, ctx, docs := strings.Repeat("a", 1<<16), t.Context(), registry.New(s)
	_, policyErr := docs.Policy(ctx, org, "p")
	_, _, rulesErr := docs.AllRules(ctx, org)
	_, agentErr := docs.Agent(ctx, org, "a")
	_, recordErr := s.Record(ctx, org, uuid.NewString())
	_, meterErr := s.Metered(ctx, org, 1)
	_, subErr := docs.Subscription(ctx, org)
	_, _, listErr := s.ListRecords(ctx, org, storage.Filter{}, storage.Page{Limit: 1})
	_, updateErr := docs.UpdateRule(ctx, org, "r", func(r engine.Rule) (engine.Rule, error) { return r, nil })
	_, commitErr := s.Append(ctx, storage.Batch{Records: []*storage.Record{{OrganizationID: org}}}, nil)
	for what, err := range map[string]error{
		"Policy": policyErr, "AllRules": rulesErr, "Agent": agentErr, "Record": recordErr, "Metered": meterErr,
		"Subscription": subErr, "ListRecords": listErr, "UpdateRule": updateErr, "Commit": commitErr,
		"DeleteRule": docs.DeleteRule(ctx, org, "r", nil),
	} {
		if err == nil || errors.Is(err, storage.ErrNotFound) {
			t.Errorf("%s = %v, want an error about the length", what, err)
		}
	}
}

func TestStartOf_TooShort(t *testing.T) {
	page := storage.Page{Limit: 1, After: cursor(kindRecord, []byte("abc"))}
	if got, err := startOf(kindRecord, "org", page, 3); err != nil || string(got) != "abc" {
		t.Errorf("startOf = %q, %v, want abc", got, err)
	}
	if got, err := startOf(kindRecord, "org", page, 4); !errors.Is(err, storage.ErrBadCursor) {
		t.Errorf("startOf of a position that is too short = %q, %v; want ErrBadCursor", got, err)
	}
}
