package main

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"aead.dev/minisign"
)

// publicKeyFile has the public half of the key that signs releases.
const publicKeyFile = "deploy/release.pub"

// sumsFile lists the digests of all files, as sha256sum -c reads them.
const sumsFile = "SHA256SUMS"

// makeKey writes a new secret key to file and its public half to public. It overwrites neither.
func makeKey(file, password, public string) error {
	pub, key, err := minisign.GenerateKey(rand.Reader)
	if err != nil {
		return fmt.Errorf("making a key: %w", err)
	}
	secret, err := minisign.EncryptKey(password, key)
	if err != nil {
		return fmt.Errorf("encrypting the key: %w", err)
	}
	text, err := pub.MarshalText()
	if err != nil {
		return fmt.Errorf("writing the public key: %w", err)
	}
	if err := create(file, secret, 0o600); err != nil {
		return err
	}
	return create(public, append(text, '\n'), 0o644)
}

// readKey returns the secret key in file, whose public half must be the one in public.
func readKey(file, password, public string) (key minisign.PrivateKey, err error) {
	want, err := minisign.PublicKeyFromFile(public)
	if err != nil {
		return key, fmt.Errorf("reading the public key, which make release-key makes: %w", err)
	}
	if key, err = minisign.PrivateKeyFromFile(password, file); err != nil {
		return key, fmt.Errorf("reading RELEASE_KEY with RELEASE_PASSWORD: %w", err)
	}
	if got, ok := key.Public().(minisign.PublicKey); !ok || !got.Equal(want) {
		return key, fmt.Errorf("RELEASE_KEY is not the key of %s: nobody could verify what it signs", public)
	}
	return key, nil
}

// sign writes the digests of the files in dir, and their signature. The trusted comment says which release it is.
func (r release) sign(dir string, key minisign.PrivateKey) error {
	entries, err := os.ReadDir(dir) // it is sorted
	if err != nil {
		return err
	}
	var sums bytes.Buffer
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(data), e.Name())
	}
	if sums.Len() == 0 {
		return errors.New("there is nothing to sign")
	}
	comment := fmt.Sprintf("writ %s, commit %s", r.tag, r.revision)
	signature := minisign.SignWithComments(key, sums.Bytes(), comment, "verify with "+publicKeyFile)
	if err := create(filepath.Join(dir, sumsFile), sums.Bytes(), 0o644); err != nil {
		return err
	}
	return create(filepath.Join(dir, sumsFile+".minisig"), signature, 0o644)
}

// create writes a file that must not exist.
func create(name string, data []byte, mode os.FileMode) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}
