package transfer

import (
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/google/uuid"

	"writ.example/writ/engine"
	"writ.example/writ/engine/condition"
	"writ.example/writ/storage"
	"writ.example/writ/storage/receipt"
)

// revisable are the collections whose revisions are kept, because a store may have decided under them.
var revisable = []*storage.Collection{
	&storage.Libraries.Collection, &storage.Lists.Collection, &storage.Rules.Collection,
}

// revised reports whether the revisions of a kind of document are kept.
func revised(k storage.Kind) bool {
	return slices.ContainsFunc(revisable, func(c *storage.Collection) bool { return c.Kind == k })
}

// writeOrigins writes the origins of imported rows, and the source as the origin of its own rows.
func (e *exporter) writeOrigins(r storage.Reader) error {
	var all []*storage.Origin
	q := storage.Query{Org: e.cfg.Organization}
	err := storage.Origins.Scan(r, q, func(_ []byte, o *storage.Origin) (bool, error) {
		all = append(all, o)
		return true, nil
	})
	own := &storage.Origin{ID: e.state.header.ID}
	if err == nil {
		own.Forgotten, err = e.forgottenBefore(r)
	}
	if err == nil && (e.state.header.Last != "" || !own.Forgotten.IsZero()) {
		err = e.src.Chains(e.ctx, func(tip receipt.Chain) error {
			own.Chains = append(own.Chains, hex.EncodeToString(tip.ID[:]))
			return nil
		})
		slices.Sort(own.Chains)
		all = append(all, own)
	}
	slices.SortFunc(all, func(a, b *storage.Origin) int { return strings.Compare(a.ID, b.ID) })
	for _, o := range all {
		if err == nil {
			err = write(e, storage.Origins, o.ID, o)
		}
	}
	return err
}

// write writes a document that the source does not have in this form.
func write[T any](e *exporter, c storage.Of[T], id string, doc *T) error {
	value, err := c.Encode(doc)
	if err != nil {
		return err
	}
	return e.document(&c.Collection, storage.Document{ID: id, Value: value})
}

// writeRevisions writes imported revisions as they are, and the source's own revisions under the origin that
// the file makes of the source. A current document under which the source may have decided is a
// revision, too: the target gives it another number. Memory holds the ids of all, and one document.
func (e *exporter) writeRevisions(r storage.Reader) error {
	current, err := e.currentRevisions(r)
	if err != nil {
		return err
	}
	own := storage.RevisionsFrom(e.state.header.ID)
	ids := slices.Collect(maps.Keys(current)) // in the file
	q := storage.Query{Kind: storage.RevisionKind, Org: e.cfg.Organization, Bare: true}
	if err := r.Scan(q, func(_ []byte, d storage.Document) (bool, error) {
		id := d.ID
		if !storage.IsImportedRevision(id) {
			id = own + id
		}
		ids = append(ids, id)
		return true, nil
	}); err != nil {
		return err
	}
	slices.Sort(ids)
	for _, id := range ids {
		v := current[id]
		if at, isOwn := strings.CutPrefix(id, own); v == nil {
			if v, err = storage.Revisions.Get(r, e.cfg.Organization, at); err == nil && isOwn {
				v.Origin = e.state.header.ID
			}
		} else if d, getErr := r.Get(v.DocumentKind(), e.cfg.Organization, v.ID); getErr != nil {
			err = getErr
		} else {
			v.Value = d.Value
		}
		if err == nil {
			err = write(e, storage.Revisions, id, v)
		}
		if delete(current, id); err != nil {
			return err
		}
	}
	return nil
}

// currentRevisions returns the current documents under which the source may have decided, as revisions
// without their values, by their ids in the file.
func (e *exporter) currentRevisions(r storage.Reader) (map[string]*storage.Revision, error) {
	loaded, err := storage.AllLoaded.Get(r, e.cfg.Organization, "")
	if errors.Is(err, storage.ErrNotFound) {
		return nil, nil
	}
	all := make(map[string]*storage.Revision)
	for _, c := range revisable {
		if err != nil {
			return nil, err
		}
		err = eachOf(r, e.cfg.Organization, c, func(d storage.Document) error {
			v := &storage.Revision{
				Origin: e.state.header.ID, Of: string(rune(c.Kind)), ID: d.ID,
				Since:      int64(min(d.Revision, math.MaxInt64)), //nolint:gosec // limited to MaxInt64
				ReplacedAt: e.state.header.ExportedAt,
			}
			if v.Since <= loaded.Through {
				all[v.DocumentID()] = v
			}
			return nil
		})
	}
	return all, err
}

// origin verifies an origin. The chains of rows and of origins belong to other stores, see [importer.begin].
func (c *checker) origin(doc storage.Document) error {
	o, err := strictly(storage.Origins, doc)
	if err != nil {
		return err
	}
	if id, err := uuid.Parse(o.ID); err != nil || id.Version() != 7 || id.String() != o.ID {
		return fmt.Errorf("the id of the origin, %.64q, is not a UUIDv7", o.ID)
	}
	for _, text := range o.Chains {
		var chain [16]byte
		if !unhex(chain[:], text) {
			return fmt.Errorf("the chain %.64q of the origin %s: want 32 lower-case hex digits", text, o.ID)
		}
		if c.ofOrigins[chain] {
			return fmt.Errorf("the chain %s is of two origins, or twice of one", text)
		}
		c.ofOrigins[chain] = true
		c.found.chains[chain] = true
	}
	c.origins[o.ID] = true
	return nil
}

// revision verifies a revision. Its document must be one that the endpoint of its kind would take, but
// need not compile, because it decides nothing.
func (c *checker) revision(doc storage.Document) error {
	v, err := strictly(storage.Revisions, doc)
	if err != nil {
		return err
	}
	newer := c.newer
	c.newer = v
	same := newer != nil && newer.Origin == v.Origin && newer.Of == v.Of && newer.ID == v.ID
	switch kind := v.DocumentKind(); {
	case !c.origins[v.Origin]:
		return fmt.Errorf("the revision is of the origin %.64q, which is not in the file", v.Origin)
	case !revised(kind):
		return fmt.Errorf("the revision is of a document of the kind %.32q: want r, l or b", v.Of)
	case kind == storage.RuleKind && !condition.IsUUID(v.ID):
		return badID("rule", v.ID)
	case v.Since < 1 || v.Since > condition.MaxInteger || v.Until > condition.MaxInteger:
		return fmt.Errorf("the revision is from %d to %d: want integers from 1 to %d", v.Since, v.Until,
			int64(condition.MaxInteger))
	case v.Until != 0 && v.Until <= v.Since:
		return fmt.Errorf("the revision %d of %.80q ends at %d, before it begins", v.Since, v.ID, v.Until)
	case same && (v.Until == 0 || v.Until > newer.Since):
		return fmt.Errorf("the revision %d of %.80q stands beside its revision %d", v.Since, v.ID, newer.Since)
	case v.ReplacedAt.IsZero():
		return fmt.Errorf("the revision %d of %.80q has no replaced_at", v.Since, v.ID)
	}
	return c.revisedDocument(v)
}

// revisedDocument verifies the document of a revision.
func (c *checker) revisedDocument(v *storage.Revision) error {
	doc := v.Document(c.state.header.OrganizationID)
	_, _, _, err := storage.CollectionOf(doc.Kind).Describe(doc)
	switch {
	case err != nil:
	case doc.Kind == storage.ListKind:
		err = condition.CheckListName(v.ID)
	case doc.Kind == storage.LibraryKind:
		err = engine.CheckLibraryName(v.ID)
	}
	return err
}
