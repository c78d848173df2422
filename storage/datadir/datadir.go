// Package datadir names and makes the files of a data directory. A deployment keeps its keys
// and the embedded store there:
//
//	store/            the embedded store
//	store.tip         how far the store has come, noted beside it
//	signing-key.pem   the key that signs receipts, and perhaps the one that signs from a later time
//	keys.jwks         every public key that ever signed: what verifiers trust
//	keys.retired      the keys that must not sign again
//	operator-secret   the HS256 secret of operator tokens
//	scrub-key         the keys of the tags that hide identities
//
// If a secret is missing, its first use makes it. Only the owner of the directory can read a
// secret. A secret is durable before it is used, so a signing key survives a power failure before
// it signs anything. If several processes make the same secret at the same time, all of them use
// the first one.
package datadir

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"writ.example/writ/storage/receipt"
)

// Dir is the path of a data directory.
type Dir string

// Store is the path of the embedded store.
func (d Dir) Store() string { return filepath.Join(string(d), "store") }

// SigningKey is the path of the private key that signs receipts.
func (d Dir) SigningKey() string { return filepath.Join(string(d), "signing-key.pem") }

// JWKS is the path of the public keys.
func (d Dir) JWKS() string { return filepath.Join(string(d), "keys.jwks") }

// OperatorSecret is the path of the secret of operator tokens.
func (d Dir) OperatorSecret() string { return filepath.Join(string(d), "operator-secret") }

// ScrubKey is the path of the scrub keys. They make the tags that replace identities in stored
// records.
func (d Dir) ScrubKey() string { return filepath.Join(string(d), "scrub-key") }

// Create makes the directory if it does not exist. Only its owner can read it.
func (d Dir) Create() error {
	if d == "" {
		return errors.New("the data directory has no name: want --data DIR, such as ./data")
	}
	if err := os.MkdirAll(string(d), 0o700); err != nil {
		return fmt.Errorf("making the data directory: %w", err)
	}
	return nil
}

// Exposed returns the files to which anyone but the owner has access.
func Exposed(files ...string) (exposed []string) {
	for _, name := range files {
		if info, err := os.Stat(name); err == nil && info.Mode().Perm()&0o077 != 0 {
			exposed = append(exposed, name)
		}
	}
	return exposed
}

// trusted returns the keys of keys.jwks.
func (d Dir) trusted() (receipt.Keys, error) {
	data, err := os.ReadFile(d.JWKS())
	if err != nil {
		return receipt.Keys{}, fmt.Errorf("reading the trusted keys: %w", err)
	}
	keys, err := receipt.ParseKeys(data)
	if err != nil {
		return receipt.Keys{}, fmt.Errorf("%s: %w", d.JWKS(), err)
	}
	return keys, nil
}

// Trust adds to keys.jwks the keys that the file lacks. It returns all keys of the file.
func (d Dir) Trust(keys receipt.Keys) (receipt.Keys, error) {
	known, err := d.trusted()
	if errors.Is(err, fs.ErrNotExist) {
		return keys, WriteFile(d.JWKS(), keys.JWKS(), os.Rename)
	}
	if err != nil {
		return receipt.Keys{}, err
	}
	all := known.With(keys)
	if len(all.IDs()) == len(known.IDs()) {
		return known, nil
	}
	return all, WriteFile(d.JWKS(), all.JWKS(), os.Rename)
}

// Secret returns the secret of operator tokens in the named file. If name is empty, it returns
// the directory's own secret.
func (d Dir) Secret(name string) ([]byte, error) {
	data, err := d.readOrMake("operator secret", name, d.OperatorSecret())
	if err != nil {
		return nil, err
	}
	secret, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(data)))
	if err != nil || len(secret) < sha256.Size {
		return nil, fmt.Errorf(
			"%s: want at least %d bytes in base64: restore it, or remove it to have a new one made, which "+
				"invalidates every operator token", cmp.Or(name, d.OperatorSecret()), sha256.Size,
		)
	}
	return secret, nil
}

// ScrubKeys returns the scrub keys in the named file. If name is empty, it returns the directory's
// own scrub keys. The file has one key in base64 on each line. A named file must exist: if
// ScrubKeys made a new key, every identity would get a different tag.
func (d Dir) ScrubKeys(name string) (keys [][]byte, err error) {
	data, err := d.readOrMake("scrub keys", name, d.ScrubKey())
	if err != nil {
		return nil, err
	}
	for _, line := range strings.Fields(string(data)) {
		key, err := base64.StdEncoding.DecodeString(line)
		if err != nil {
			return nil, fmt.Errorf(
				"%s: want one key a line, at least 32 bytes in base64 each: key %d is no base64",
				cmp.Or(name, d.ScrubKey()), len(keys)+1,
			)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// readOrMake reads the named file. If name is empty, it reads the file own. If own does not
// exist, it makes the file of 32 random bytes in base64.
func (d Dir) readOrMake(what, name, own string) ([]byte, error) {
	data, err := os.ReadFile(cmp.Or(name, own))
	if name == "" && errors.Is(err, fs.ErrNotExist) {
		if err := d.Create(); err != nil {
			return nil, err
		}
		secret := make([]byte, 32)
		rand.Read(secret) // never fails: an error would crash the process
		err := WriteFile(own, []byte(base64.StdEncoding.EncodeToString(secret)+"\n"), os.Link)
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		return d.readOrMake(what, own, own)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the %s: %w", what, err)
	}
	return data, nil
}

// WriteFile writes a file that only its owner can read. The file is durable, and it is written
// completely or not at all. place moves the written file to its name. os.Rename as place replaces
// an existing file. os.Link as place fails with fs.ErrExist if the file exists.
func WriteFile(name string, data []byte, place func(from, to string) error) error {
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+"-*") // mode 0600
	if err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = place(f.Name(), name)
	}
	// After a rename nothing is left to remove.
	if rerr := os.Remove(f.Name()); rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
		err = errors.Join(err, rerr)
	}
	if err == nil {
		err = Sync(filepath.Dir(name))
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return nil
}

// Sync makes the names of the files in a directory durable.
func Sync(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
