package embedded

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strconv"

	"writ/engine"
	"writ/storage"
)

// upgrade adds the rows that an earlier format lacks. It writes the number of this format
// last, so that an interrupted upgrade is done again.
func (s *Store) upgrade(from int) error {
	if from < linkedFormat {
		if err := s.addLinks(); err != nil {
			return err
		}
	}
	if from < documentFormat {
		if err := s.moveDocuments(); err != nil {
			return err
		}
	}
	return s.moveHistory()
}

func (b *batch) setFormat(n int64) { b.set(formatKey, strconv.AppendInt(nil, n, 10)) }

// addLinks adds the links and the recorded tip that formats 1 and 2 lack. The present
// state of the directory counts as complete. The tip is recorded first: a store of a
// later format without a tip has lost it.
func (s *Store) addLinks() error {
	t := s.end()
	if err := s.noteTip(t); err != nil {
		return err
	}
	s.health.log.Info("nothing has noted yet how far this store has come: it is taken as it is", "dir", s.health.dir, "head", t.Head)
	b := &batch{b: s.db.NewBatch()}
	b.begin(t)
	b.setFormat(linkedFormat)
	if b.err != nil {
		return errors.Join(b.err, b.b.Close())
	}
	return s.apply(b.b)
}

// The rows of documents in formats 1 to 4, in ranges of keys by their first byte:
//
//	'a' org agent-id                   agent          JSON
//	'c' org 'P'                        how many bytes the versions of policies take: 8 bytes
//	'p' org policy-id 00 01 ^version   policy         JSON
//	'r' org rule-id                    rule           JSON
//	's' org                            subscription   JSON
//	't' token-id                       token          JSON
//
// The other rows are counts and indexes, which follow from these.
const oldDocuments = "abcefprstuvwy"

// moved is about how many bytes are moved at once.
const moved = 1 << 20

// mover moves the documents of formats 1 to 4 to the keys of format 5. The last write
// deletes the old rows, which count until then. Each document gets a revision and a
// change of its own. After the ledger has signed these, every document matches a signed
// change.
type mover struct {
	s      *Store
	b      *batch
	counts map[string]*storage.Counts
	policy string // the organization and id of the last policy
	last   uint64 // revision
}

func (s *Store) moveDocuments() error {
	m := mover{s: s, b: &batch{b: s.db.NewBatch()}, counts: make(map[string]*storage.Counts), last: s.change + 1}
	for _, k := range []kind{kindDocument, kindIndex, kindChange, kindTrimmed} { // of an interrupted upgrade
		m.b.deleteAll(key{byte(k)})
	}
	err := m.move()
	for i := range oldDocuments {
		m.b.deleteAll(key{oldDocuments[i]})
	}
	m.b.number(trimmedKey, int64(s.change)+1) // earlier revisions are not told
	m.b.setFormat(documentFormat)
	if m.b.link(changeStream, m.last); m.b.err == nil && m.last > s.change+1 {
		m.b.err = m.b.b.SingleDelete(linkKey(changeStream, s.change), nil)
	}
	if err = errors.Join(err, m.b.err); err != nil {
		return errors.Join(err, m.b.b.Close())
	}
	if err := s.apply(m.b.b); err != nil {
		return err
	}
	s.change = m.last
	return nil
}

func (m *mover) move() error {
	for _, c := range storage.Collections() {
		if c.Quiet {
			continue
		}
		lower, upper := key{byte(c.Kind)}, key{byte(c.Kind) + 1}
		err := m.s.scan(context.Background(), lower, upper, func(k, v []byte) (bool, error) {
			d := storage.Document{Kind: c.Kind, ID: string(k[1:]), Value: bytes.Clone(v)}
			if err := m.place(&d); err != nil {
				return true, err
			}
			return false, m.put(c, d)
		})
		if err != nil {
			return err
		}
	}
	for org, n := range m.counts {
		size, err := m.s.count(append(orgKey('c', org), 'P'))
		if err != nil {
			return err
		}
		n.VersionBytes = size
		value, err := storage.AllCounts.Encode(n)
		if err != nil {
			return err
		}
		if err := m.put(&storage.AllCounts.Collection, storage.Document{Kind: storage.CountsKind, Org: org, Value: value}); err != nil {
			return err
		}
	}
	return nil
}

// place finds the organization of a document in its old key, or in the token, and
// counts it.
func (m *mover) place(d *storage.Document) error {
	if d.Kind == storage.TokenKind {
		t, err := storage.Tokens.Parse(*d)
		if err == nil {
			d.Org = t.OrganizationID
		}
		return err
	}
	org, rest, err := splitOrg([]byte(d.ID))
	if err != nil {
		return err
	}
	d.Org, d.ID = string(org), string(rest)
	n := m.counts[d.Org]
	if n == nil {
		n = new(storage.Counts)
		m.counts[d.Org] = n
	}
	switch d.Kind {
	case storage.PolicyKind:
		p, err := storage.Policies.Parse(*d)
		if err != nil {
			return err
		}
		if policy := string(orgKey(0, d.Org).text(p.PolicyID)); policy != m.policy {
			m.policy = policy
			n.Policies++
		}
	case storage.RuleKind:
		n.Rules++
	case storage.AgentKind:
		a, err := storage.Agents.Parse(*d)
		if err != nil {
			return err
		}
		n.Agents++
		if a.Status == engine.AgentDisabled {
			n.Disabled++
		}
	}
	return nil
}

// put adds d to the batch and writes the batch if it is large.
func (m *mover) put(c *storage.Collection, d storage.Document) error {
	m.last++
	d.Revision = m.last
	id, alias, err := m.b.putDocument(c, d)
	if err != nil {
		return fmt.Errorf("moving the %s %q of %q: %w", c.Name, d.ID, d.Org, err)
	}
	if !c.Quiet {
		m.b.document(changeKey(m.last, 0), &storage.Change{
			Revision: m.last, Kind: d.Kind, Org: d.Org, ID: id, Alias: alias, Digest: sha256.Sum256(d.Value),
		})
	}
	return m.s.spill(m.b)
}
