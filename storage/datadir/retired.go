package datadir

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// RetiredKeys is the path of the list of retired keys. Each line has a key id, a space and when it was retired:
//
//	9ooey5gCssRcWGV-aofeliWsJKPTq4Gq6u6h5PSvFc8 2026-11-28T09:00:00Z
func (d Dir) RetiredKeys() string { return filepath.Join(string(d), "keys.retired") }

// Retired returns when each retired key was retired, by key id.
func (d Dir) Retired() (map[string]time.Time, error) {
	f, err := os.Open(d.RetiredKeys())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // a nil map has no keys
	}
	if err != nil {
		return nil, fmt.Errorf("reading the retired keys: %w", err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	all := make(map[string]time.Time)
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		kid, at, _ := strings.Cut(lines.Text(), " ")
		if all[kid], err = time.Parse(time.RFC3339, at); err != nil {
			return nil, fmt.Errorf("%s: line %d: want a key id, a space and a time such as 2026-11-28T09:00:00Z",
				f.Name(), len(all))
		}
	}
	return all, lines.Err()
}

// Retire notes that a key of keys.jwks must not sign again. It refuses a key that signs or will.
func (d Dir) Retire(kid string, signing Signing, now time.Time) error {
	known, err := d.trusted()
	if err != nil {
		return err
	}
	retired, err := d.Retired()
	if err != nil {
		return err
	}
	_, before := retired[kid]
	switch {
	case before:
		return nil
	case len(known.Only(kid).IDs()) == 0:
		return fmt.Errorf("%s has no key %.64q: want one of %s", d.JWKS(), kid, strings.Join(known.IDs(), ", "))
	case signing.At(now).KeyID() == kid:
		return fmt.Errorf("the key %s signs: run writ keys generate, and retire it once the new key signs", kid)
	case signing.Next != nil && signing.At(now) != signing.Next && signing.Next.KeyID() == kid:
		return fmt.Errorf("the key %s signs from %s on: run writ keys generate to have another one sign then",
			kid, signing.From.Format(time.RFC3339))
	}
	text, err := os.ReadFile(d.RetiredKeys())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("reading the retired keys: %w", err)
	}
	line := kid + " " + now.UTC().Format(time.RFC3339) + "\n"
	return WriteFile(d.RetiredKeys(), append(text, line...), os.Rename)
}

// Withdraw removes a key from keys.jwks. No row may need it.
func (d Dir) Withdraw(kid string) error {
	known, err := d.trusted()
	if err != nil {
		return err
	}
	left := known.Without(kid)
	if len(left.IDs()) == len(known.IDs()) {
		return nil
	}
	return WriteFile(d.JWKS(), left.JWKS(), os.Rename)
}
