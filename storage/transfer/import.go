package transfer

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"writ.example/writ/storage"
	"writ.example/writ/storage/ledger"
	"writ.example/writ/storage/receipt"
	"writ.example/writ/storage/registry"
)

// Actor is the name of the actor in the change history of imported documents.
const Actor = "import"

// Target is the store that an organization is imported into.
type Target struct {
	Store storage.Store
	// Ledger writes to Store. It signs the import and the changes of documents.
	Ledger *ledger.Ledger
	// Publish publishes public keys. Import publishes the keys of rows before it stores the rows.
	Publish func(ctx context.Context, keys receipt.Keys) error
	// Now is the clock.
	Now func() time.Time
	// Progress counts rows.
	Progress ledger.Progress
}

// ErrHere means that the target already has data of the organization.
var ErrHere = errors.New("the store has the organization already")

// Import stores the content of a file that Check has read. It reads the file again from its
// beginning. If the file has changed, Import stores nothing that Check has not read. An interrupted
// Import can be repeated with the same file, and keeps the stored rows and documents. A repeated
// Import after a finished one changes nothing.
//
// A file has no approvals. With the same approval the source could still allow the intent that the
// target allows. In the target a held decision that was not used counts as expired, and nobody can
// approve it.
//
// Import returns a *LineError, ErrHere, or an error from reading or storing.
func Import(ctx context.Context, t Target, in io.ReadSeeker, checked *Checked) (ledger.Import, error) {
	ctx = storage.WithActor(ctx, Actor)
	i := importer{ctx: ctx, Target: t, checked: checked, org: checked.Header.OrganizationID}
	done, err := i.begin()
	if err != nil {
		return ledger.Import{}, err
	}
	if done == nil {
		if err := i.file(in); err != nil {
			return ledger.Import{}, err
		}
		if err := i.sign(); err != nil {
			return ledger.Import{}, err
		}
	} else if i.signed = *done; i.signed.Root != checked.Footer.Root {
		return ledger.Import{},
			fmt.Errorf("%w: it was imported from this export at %s, and the file was another then", ErrHere,
				done.ImportedAt.Format(time.RFC3339))
	}
	return i.signed, i.end()
}

type importer struct {
	Target
	ctx     context.Context
	checked *Checked
	org     string

	state     state
	run       run
	runs      int // number of stored runs
	rows      []*storage.Record
	removed   []*storage.Tombstone
	documents []storage.Document
	policy    string // policy id of the last stored version
	signed    ledger.Import
}

// begin stores a document that says that the import is unfinished. If the import was finished
// before, begin returns the signed entry of that import. If the store has other data of the
// organization, begin returns an error.
func (i *importer) begin() (done *ledger.Import, err error) {
	if err := i.Store.Chains(i.ctx, func(end receipt.Chain) error {
		if i.checked.chains[end.ID] {
			return fmt.Errorf(
				"the store has chain %x itself, under which rows of the file are: it is the one they were exported "+
					"from, or a copy of it", end.ID,
			)
		}
		return nil
	}); err != nil {
		return nil, err
	}
	if done, err = i.done(); done != nil || err != nil {
		return done, err
	}
	if err := i.refusesForgotten(); err != nil {
		return nil, err
	}
	if err := i.claim(); err != nil {
		return nil, err
	}
	return nil, i.publish()
}

// refusesForgotten returns an error if an intent whose decision the source has forgotten could be decided again.
func (i *importer) refusesForgotten() error {
	forgotten := i.checked.Header.Forgotten
	if forgotten.IsZero() {
		return nil
	}
	age, err := registry.New(i.Store).IntentAge(i.ctx)
	if err == nil && (age == nil || age.RefusedBefore(i.Now()).Before(forgotten)) {
		err = fmt.Errorf("the store of the export has forgotten decisions of intents that were issued before %s, and "+
			"this store would decide them again: serve it with an --intent-age of at most %v first",
			forgotten.Format(time.RFC3339), (i.Now().Sub(forgotten) / 2).Truncate(time.Minute))
	}
	return err
}

// done returns the organization's signed import, or nil without one. If the signed import came
// from another export, done returns an error.
func (i *importer) done() (*ledger.Import, error) {
	entries, _, err := i.Store.Entries(i.ctx, i.org, storage.ImportEntry, storage.Page{Limit: 1})
	if err != nil || len(entries) == 0 {
		return nil, err
	}
	done, err := ledger.ParseImport(entries[0])
	if err == nil && done.ID != i.checked.Header.ID {
		err = fmt.Errorf("%w: it was imported at %s, from the export %s", ErrHere, done.ImportedAt.Format(time.RFC3339),
			done.ID)
	}
	return &done, err
}

// claim stores a document that says that the import is unfinished. It returns an error if the
// store has any data of the organization.
func (i *importer) claim() error {
	h := &i.checked.Header
	empty := i.empty()
	_, err := i.Store.Update(i.ctx, i.org, func(tx storage.Tx) error {
		earlier, err := storage.Imports.Get(tx, i.org, "")
		switch {
		case err == nil && earlier.ID == h.ID:
			return nil
		case err == nil:
			return fmt.Errorf("%w: the import of another file, the export %s, is not finished", ErrHere, earlier.ID)
		case !errors.Is(err, storage.ErrNotFound):
			return err
		case empty != nil:
			return empty
		}
		if err := eachDocument(tx, i.org, func(c *storage.Collection, d storage.Document) error {
			if may, err := mayRemain(d); may || err != nil {
				return err
			}
			return fmt.Errorf("%w: it has a %s", ErrHere, c.Name)
		}); err != nil {
			return err
		}
		err = storage.Imports.Put(tx, i.org,
			&storage.Import{ID: h.ID, BeganAt: i.Now().UTC().Truncate(time.Millisecond)})
		return err
	})
	return err
}

// empty returns an error if the organization has a history.
func (i *importer) empty() error {
	rows, _, err := i.Store.ListRecords(i.ctx, i.org, storage.Filter{}, storage.Page{Limit: 1})
	if err == nil && len(rows) > 0 {
		err = fmt.Errorf("%w: it has decisions", ErrHere)
	}
	if before, abandonedErr := abandoned(i.ctx, i.Store, i.org); before || abandonedErr != nil {
		return cmp.Or(err, abandonedErr) // an abandoned import may have left history
	}
	for _, kind := range []storage.EntryKind{storage.ChangeEntry, storage.RetentionEntry, storage.VerdictEntry} {
		if err != nil {
			return err
		}
		var entries []*storage.Entry
		if entries, _, err = i.Store.Entries(i.ctx, i.org, kind, storage.Page{Limit: 1}); len(entries) > 0 &&
			err == nil {
			err = fmt.Errorf("%w: its history has a %s", ErrHere, kind)
		}
	}
	return err
}

// publish publishes the trusted keys of the file.
func (i *importer) publish() error {
	published, err := registry.New(i.Store).PublicKeys(i.ctx)
	if err != nil {
		return err
	}
	for _, id := range i.checked.Keys.IDs() {
		there := published.Only(id)
		if len(there.IDs()) > 0 && !bytes.Equal(there.JWKS(), i.checked.Keys.Only(id).JWKS()) {
			return fmt.Errorf("the store has another key of the id %q", id)
		}
	}
	return i.Publish(i.ctx, i.checked.Keys)
}

// sign signs the import. Call it only after everything is stored.
func (i *importer) sign() (err error) {
	if err = i.Ledger.SignChanges(i.ctx, i.Store); err != nil {
		return err
	}
	f := &i.checked.Footer
	i.signed, err = i.Ledger.SignImport(i.ctx, ledger.Import{
		ID: i.checked.Header.ID, OrganizationID: i.org, Rows: f.Rows, Settled: f.Settled, Removed: f.Removed,
		Root: f.Root,
	})
	return err
}

// end removes the document that says that the import is unfinished.
func (i *importer) end() error {
	_, err := i.Store.Update(i.ctx, i.org, func(tx storage.Tx) error {
		err := tx.Delete(storage.ImportKind, i.org, "")
		if errors.Is(err, storage.ErrNotFound) {
			return nil
		}
		return err
	})
	if err != nil {
		return err
	}
	return i.Ledger.SignChanges(i.ctx, i.Store)
}
