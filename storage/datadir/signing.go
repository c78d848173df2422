package datadir

import (
	"cmp"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"writ.example/writ/storage/receipt"
)

// Notice is how long a key is published before it signs, unless it is needed at once. Verifiers that keep the
// public keys have read them again by then.
const Notice = 5 * time.Minute

// Signing is what a file of signing keys has: the key that signs and, after a line with a time, the key that signs
// from then on. OpenSSL and others read the first key.
//
//	-----BEGIN PRIVATE KEY-----
//	…
//	-----END PRIVATE KEY-----
//	# From 2026-11-28T09:00:00Z:
//	-----BEGIN PRIVATE KEY-----
//	…
//	-----END PRIVATE KEY-----
type Signing struct {
	Key  *receipt.Signer
	Next *receipt.Signer // nil if there is none
	From time.Time       // when Next begins to sign

	key, next string // the keys in PEM
}

// At returns the key that signs at a time.
func (s Signing) At(t time.Time) *receipt.Signer {
	if s.Next != nil && !t.Before(s.From) {
		return s.Next
	}
	return s.Key
}

// Public returns the public halves of all keys.
func (s Signing) Public() (receipt.Keys, error) {
	all := []ed25519.PublicKey{s.Key.Public()}
	if s.Next != nil {
		all = append(all, s.Next.Public())
	}
	return receipt.NewKeys(all...)
}

// The line between two keys.
const nextMark, nextEnd = "\n# From ", ":\n"

// ReadSigning reads a file of signing keys, or asks the signer at a URL: see [IsSigner].
func ReadSigning(name string) (Signing, error) {
	if IsSigner(name) {
		signer, err := newRemoteSigner(name)
		if err != nil {
			return Signing{}, err
		}
		s, err := signer.signing()
		if err != nil {
			return Signing{}, fmt.Errorf("asking the signer for its keys: %w", err)
		}
		return s, nil
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return Signing{}, fmt.Errorf("reading the signing key: %w", err)
	}
	s, err := parseSigning(string(data))
	if err != nil {
		return Signing{}, fmt.Errorf("%s: %w", name, err)
	}
	return s, nil
}

func parseSigning(text string) (s Signing, err error) {
	key, rest, more := strings.Cut(text, nextMark)
	s.key = key
	if s.Key, err = parseSigner(key); err != nil || !more {
		return s, err
	}
	from, next, ok := strings.Cut(rest, nextEnd)
	if s.From, err = time.Parse(time.RFC3339, from); err != nil || !ok {
		return Signing{}, errors.New("the line between the keys: want a line such as \"# From 2026-11-28T09:00:00Z:\"")
	}
	s.next = next
	s.Next, err = parseSigner(next)
	return s, err
}

func parseSigner(text string) (*receipt.Signer, error) {
	priv, err := receipt.ParsePrivateKey([]byte(text))
	if err != nil {
		return nil, err
	}
	return receipt.NewSigner(priv), nil
}

// Signer returns the key of the named file that signs now. If name is empty, it reads the directory's
// own file, and makes it if it is missing. trusted has the public half of every key that may
// have signed a receipt of this deployment, or will.
func (d Dir) Signer(name string) (s *receipt.Signer, trusted receipt.Keys, err error) {
	signing, err := ReadSigning(cmp.Or(name, d.SigningKey()))
	if name == "" && errors.Is(err, fs.ErrNotExist) {
		if signing, trusted, err = d.makeSigner(d.SigningKey(), nil, os.Link); !errors.Is(err, fs.ErrExist) {
			return signing.Key, trusted, err
		}
		signing, err = ReadSigning(d.SigningKey())
	}
	if err != nil {
		return nil, receipt.Keys{}, err
	}
	trusted, err = d.TrustSigning(signing)
	return signing.At(time.Now()), trusted, err
}

// ReplaceSigner makes a new signing key in the named file. If name is empty, it is the directory's own file. The key
// signs after notice. Until then the key signs that signs now. Without notice, or if there was no key, the new one
// signs at once. The public half of the old key stays in keys.jwks, so receipts of the old key can still be verified.
func (d Dir) ReplaceSigner(name string, notice time.Duration) (Signing, receipt.Keys, error) {
	name = cmp.Or(name, d.SigningKey())
	if IsSigner(name) {
		return Signing{}, receipt.Keys{}, errors.New("a signer makes its keys itself: want a file")
	}
	if notice <= 0 {
		return d.makeSigner(name, nil, os.Rename)
	}
	old, err := ReadSigning(name)
	if errors.Is(err, fs.ErrNotExist) {
		return d.makeSigner(name, nil, os.Link)
	}
	if err != nil {
		return Signing{}, receipt.Keys{}, err
	}
	return d.makeSigner(name, func(s Signing) Signing {
		now := time.Now()
		made := Signing{Key: old.Key, key: old.key, Next: s.Key, next: s.key}
		made.From = now.Add(notice).UTC().Truncate(time.Second)
		if old.At(now) == old.Next {
			made.Key, made.key = old.Next, old.next
		}
		return made
	}, os.Rename)
}

// newKey makes a key whose id does not begin with a hyphen. A shell command would take such an id for a flag.
func newKey() (ed25519.PrivateKey, error) {
	for {
		public, private, err := ed25519.GenerateKey(rand.Reader)
		if err != nil || receipt.KeyID(public)[0] != '-' {
			return private, err
		}
	}
}

// makeSigner makes a key and writes it, or what with makes of it, into the named file. place moves the written file to
// its name: see writeFile.
func (d Dir) makeSigner(
	name string, with func(Signing) Signing, place func(from, to string) error,
) (Signing, receipt.Keys, error) {
	if err := d.Create(); err != nil {
		return Signing{}, receipt.Keys{}, err
	}
	priv, err := newKey()
	if err != nil {
		return Signing{}, receipt.Keys{}, fmt.Errorf("generating a signing key: %w", err)
	}
	pem, err := receipt.MarshalPrivateKey(priv)
	if err != nil {
		return Signing{}, receipt.Keys{}, fmt.Errorf("encoding the signing key: %w", err)
	}
	s := Signing{Key: receipt.NewSigner(priv), key: string(pem)}
	text := s.key
	if with != nil {
		s = with(s)
		text = strings.TrimRight(s.key, "\n") + nextMark + s.From.Format(time.RFC3339) + nextEnd + s.next
	}
	// The public key is published before the private key is stored. A crash in between leaves a
	// public key without a use. It never leaves a signing key that verifiers do not know.
	trusted, err := d.TrustSigning(s)
	if err != nil {
		return Signing{}, receipt.Keys{}, err
	}
	return s, trusted, WriteFile(name, []byte(text), place)
}

// TrustSigning is [Dir.Trust] for the keys of a file. It refuses a retired key that signs or will.
func (d Dir) TrustSigning(s Signing) (receipt.Keys, error) {
	own, err := s.Public()
	if err != nil {
		return receipt.Keys{}, err
	}
	retired, err := d.Retired()
	if err != nil {
		return receipt.Keys{}, err
	}
	for _, kid := range own.IDs() {
		if _, ok := retired[kid]; ok && (kid != s.Key.KeyID() || s.At(time.Now()) == s.Key) {
			return receipt.Keys{}, fmt.Errorf(
				"the signing key %s is retired: writ keys generate --in 0 makes another", kid)
		}
	}
	return d.Trust(own)
}
