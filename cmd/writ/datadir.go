package main

import (
	"cmp"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"writ/storage/receipt"
)

// dataDir is the directory a single-machine deployment keeps everything in:
//
//	store/            the embedded store
//	store.tip         how far the store has come, noted beside it
//	signing-key.pem   the key that signs receipts, 0600
//	keys.jwks         every public key that ever signed: what verifiers trust
//	operator-secret   the HS256 secret of operator tokens, 0600
//	scrub-key         the keys of the tags that hide identities, 0600
type dataDir string

func (d dataDir) store() string      { return filepath.Join(string(d), "store") }
func (d dataDir) signingKey() string { return filepath.Join(string(d), "signing-key.pem") }
func (d dataDir) jwks() string       { return filepath.Join(string(d), "keys.jwks") }
func (d dataDir) secret() string     { return filepath.Join(string(d), "operator-secret") }
func (d dataDir) scrubKey() string   { return filepath.Join(string(d), "scrub-key") }

// create makes the directory, readable by its owner alone.
func (d dataDir) create() error {
	if d == "" {
		return errors.New("the data directory has no name: want --data DIR, such as ./data")
	}
	if err := os.MkdirAll(string(d), 0o700); err != nil {
		return fmt.Errorf("making the data directory: %w", err)
	}
	return nil
}

// keyFiles are the secrets of a deployment, which all of its replicas share. Each is a
// file that must exist where it is named: what is made on first use in the data
// directory in place of one that is not named would be another.
type keyFiles struct {
	SigningKey     string `placeholder:"FILE" help:"Private key that signs receipts, in PEM. Default: signing-key.pem in the data directory, made by the first start."`
	OperatorSecret string `placeholder:"FILE" help:"Secret of operator tokens of HS256: 32 bytes or more in base64. Default: operator-secret in the data directory, made by the first start."`
	ScrubKey       string `placeholder:"FILE" help:"Keys of the tags that stand for secrets in agent ids and resources of the history: one a line, 32 bytes or more in base64. The first writes tags, filters know all. Default: scrub-key in the data directory, made by the first start."`
}

// in returns the files' names, those of the data directory where none is given.
func (k keyFiles) in(d dataDir) keyFiles {
	return keyFiles{
		cmp.Or(k.SigningKey, d.signingKey()), cmp.Or(k.OperatorSecret, d.secret()), cmp.Or(k.ScrubKey, d.scrubKey()),
	}
}

// exposed returns the secrets that others than their owner can read.
func (k keyFiles) exposed() []string {
	var names []string
	for _, name := range []string{k.SigningKey, k.OperatorSecret, k.ScrubKey} {
		if info, err := os.Stat(name); err == nil && info.Mode().Perm()&0o077 != 0 {
			names = append(names, name)
		}
	}
	return names
}

// loadSigner returns the signing key of a file, and every key a receipt of this
// deployment may have been signed with. Without a name it is the data directory's,
// made on first use: servers that share a directory and all find no key end up with
// the same.
func (d dataDir) loadSigner(name string) (s *receipt.Signer, trusted receipt.Keys, made bool, err error) {
	s, err = readSigner(cmp.Or(name, d.signingKey()))
	if name == "" && errors.Is(err, fs.ErrNotExist) {
		if s, trusted, err = d.newSigner(os.Link); !errors.Is(err, fs.ErrExist) {
			return s, trusted, true, err
		}
		s, err = readSigner(d.signingKey())
	}
	if err != nil {
		return nil, receipt.Keys{}, false, err
	}
	trusted, err = d.trust(s.Public())
	return s, trusted, false, err
}

func readSigner(name string) (*receipt.Signer, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("reading the signing key: %w", err)
	}
	priv, err := receipt.ParsePrivateKey(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return receipt.NewSigner(priv), nil
}

// newSigner makes a signing key, which place puts under its name. Receipts of one
// that it replaces keep verifying: its public half stays in keys.jwks.
func (d dataDir) newSigner(place func(from, to string) error) (*receipt.Signer, receipt.Keys, error) {
	if err := d.create(); err != nil {
		return nil, receipt.Keys{}, err
	}
	_, priv, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, receipt.Keys{}, fmt.Errorf("generating a signing key: %w", err)
	}
	pem, err := receipt.MarshalPrivateKey(priv)
	if err != nil {
		return nil, receipt.Keys{}, fmt.Errorf("encoding the signing key: %w", err)
	}
	s := receipt.NewSigner(priv)
	// The public key is published before anything is signed with its private
	// half: a crash between the two leaves an unused key, never an unknown one.
	trusted, err := d.trust(s.Public())
	if err != nil {
		return nil, receipt.Keys{}, err
	}
	return s, trusted, writeFile(d.signingKey(), pem, place)
}

// trust adds pub to keys.jwks unless it is there, and returns the whole set.
func (d dataDir) trust(pub ed25519.PublicKey) (receipt.Keys, error) {
	own, err := receipt.NewKeys(pub)
	if err != nil {
		return receipt.Keys{}, err
	}
	return d.trustAll(own)
}

// trustAll is trust for several keys.
func (d dataDir) trustAll(own receipt.Keys) (receipt.Keys, error) {
	data, err := os.ReadFile(d.jwks())
	if errors.Is(err, fs.ErrNotExist) {
		return own, replaceFile(d.jwks(), own.JWKS())
	}
	if err != nil {
		return receipt.Keys{}, fmt.Errorf("reading the trusted keys: %w", err)
	}
	known, err := receipt.ParseKeys(data)
	if err != nil {
		return receipt.Keys{}, fmt.Errorf("%s: %w", d.jwks(), err)
	}
	all := known.With(own)
	if len(all.IDs()) == len(known.IDs()) {
		return known, nil
	}
	return all, replaceFile(d.jwks(), all.JWKS())
}

// loadSecret returns the secret of operator tokens of a file. Without a name it is
// the data directory's, made on first use: a server and a command that both find none
// end up with the same.
func (d dataDir) loadSecret(name string) ([]byte, error) {
	secret, err := readSecret(cmp.Or(name, d.secret()))
	if name != "" || !errors.Is(err, fs.ErrNotExist) {
		return secret, err
	}
	if err := d.create(); err != nil {
		return nil, err
	}
	if err := makeSecret(d.secret()); err != nil {
		return nil, err
	}
	return readSecret(d.secret())
}

// makeSecret writes 32 random bytes in base64 to a file, unless it exists.
func makeSecret(name string) error {
	secret := make([]byte, 32)
	if _, err := rand.Read(secret); err != nil {
		return fmt.Errorf("generating %s: %w", name, err)
	}
	err := writeFile(name, []byte(base64.StdEncoding.EncodeToString(secret)+"\n"), os.Link)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

func readSecret(name string) ([]byte, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("reading the operator secret: %w", err)
	}
	secret, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(data)))
	if err != nil || len(secret) < sha256.Size {
		return nil, fmt.Errorf(
			"%s: want at least %d bytes in base64: restore it, or remove it to have a new one made, which "+
				"invalidates every operator token", name, sha256.Size,
		)
	}
	return secret, nil
}

// loadScrubKeys returns the scrub keys of a file: one a line, in base64. Without
// a name it is the data directory's, made on first use. A named file must exist:
// a key made in its place would give every identity another tag.
func (d dataDir) loadScrubKeys(name string) ([][]byte, error) {
	own := name == ""
	if own {
		name = d.scrubKey()
	}
	data, err := os.ReadFile(name)
	if own && errors.Is(err, fs.ErrNotExist) {
		if err := errors.Join(d.create(), makeSecret(name)); err != nil {
			return nil, err
		}
		data, err = os.ReadFile(name)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the scrub keys: %w", err)
	}
	var keys [][]byte
	for _, line := range strings.Fields(string(data)) {
		key, err := base64.StdEncoding.DecodeString(line)
		if err != nil {
			return nil, fmt.Errorf(
				"%s: want one key a line, at least 32 bytes in base64 each: key %d is no base64", name, len(keys)+1,
			)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// replaceFile writes a file as writeFile does, in the place of an older one.
func replaceFile(name string, data []byte) error { return writeFile(name, data, os.Rename) }

// writeFile writes a file that only its owner can read, whole or not at all,
// and durably: a key must outlive a power failure before anything is signed.
// place puts the written file under its name: os.Rename replaces what is there,
// os.Link fails with fs.ErrExist.
func writeFile(name string, data []byte, place func(from, to string) error) error {
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
		err = syncDir(filepath.Dir(name))
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return nil
}

// syncDir makes the names in a directory durable.
func syncDir(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
