package approval

import (
	"context"
	"errors"
	"slices"
	"strings"

	"writ.example/writ/storage"
	"writ.example/writ/storage/ledger"
)

// Related reports whether a credential asked for a decision itself or is of the same family. A
// family is all keys with the same first maker. An operator who asked for a decision is related to
// every key, because a key does not say which operator made it. Another operator is not related.
//
// A related credential may neither approve the decision nor give back its place under a limit over
// time.
// credential has the form of [ledger.Entry] and is not scrubbed.
func (d *Desk) Related(ctx context.Context, decided *storage.Record, credential string) (bool, error) {
	subject, operator := strings.CutPrefix(credential, ledger.OperatorPrefix)
	asked, byOperator := strings.CutPrefix(decided.Credential, ledger.OperatorPrefix)
	switch {
	case byOperator:
		return !operator || subject == asked || slices.Contains(d.cfg.Scrub.Spellings(subject), asked), nil
	case operator:
		return false, nil
	}
	if credential == decided.Credential {
		return true, nil
	}
	a, err := d.root(ctx, decided.OrganizationID, credential)
	if err != nil {
		return false, err
	}
	b, err := d.root(ctx, decided.OrganizationID, decided.Credential)
	return a == b, err
}

// root returns the first maker of a key. An unknown key is its own maker.
func (d *Desk) root(ctx context.Context, org, key string) (string, error) {
	for {
		t, err := d.docs.Token(ctx, key)
		switch {
		case errors.Is(err, storage.ErrNotFound), err == nil && (t.OrganizationID != org || t.ParentID == ""):
			return key, nil
		case err != nil:
			return "", err
		}
		key = t.ParentID
	}
}
