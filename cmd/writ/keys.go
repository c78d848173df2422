package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"writ.example/writ/storage/datadir"
)

// keyFiles are the files with the secrets of a deployment. All replicas share the secrets.
type keyFiles struct {
	SigningKey     string `placeholder:"FILE" help:"Private key that signs receipts, in PEM. Default: signing-key.pem in the data directory, made by the first start."`
	OperatorSecret string `placeholder:"FILE" help:"Secret of operator tokens of HS256: 32 bytes or more in base64. Default: operator-secret in the data directory, made by the first start."`
	ScrubKey       string `placeholder:"FILE" help:"Keys of the tags that stand for secrets in agent ids and resources of the history: one a line, 32 bytes or more in base64. The first writes tags, filters know all. Default: scrub-key in the data directory, made by the first start."`
}

// exposed returns the secret files that users other than the owner can read.
func (k keyFiles) exposed(d datadir.Dir) []string {
	return datadir.Exposed(cmp.Or(k.SigningKey, d.SigningKey()), cmp.Or(k.OperatorSecret, d.OperatorSecret()),
		cmp.Or(k.ScrubKey, d.ScrubKey()))
}

// ownKey is a secret that a data directory keeps.
type ownKey struct{ file, use string }

// missing returns the secrets that no flag names and that the data directory does not have yet. A
// start makes them.
func (k keyFiles) missing(d datadir.Dir) (keys []ownKey) {
	for _, own := range []struct {
		flag string
		ownKey
	}{
		{k.SigningKey, ownKey{d.SigningKey(), "signs receipts"}},
		{k.OperatorSecret, ownKey{d.OperatorSecret(), "signs operators' tokens"}},
		{k.ScrubKey, ownKey{d.ScrubKey(), "hides identities in the history"}},
	} {
		if _, err := os.Stat(own.file); own.flag == "" && errors.Is(err, fs.ErrNotExist) {
			keys = append(keys, own.ownKey)
		}
	}
	return keys
}

type keysCmd struct {
	Generate keysGenerateCmd `cmd:"" help:"Make a new signing key; receipts signed with the old one keep verifying."`
	Show     keysShowCmd     `cmd:"" help:"Print the public keys that verify this deployment's receipts, as a JSON Web Key Set."`
}

type keysGenerateCmd struct {
	Data datadir.Dir `default:"./data" help:"Data directory."`
}

func (c *keysGenerateCmd) Help() string {
	return `Replaces the signing key in the data directory. The public halves of all keys
stay in keys.jwks there, so that receipts of the old key keep verifying. A server
that runs publishes the new key and signs with it two seconds later. To rotate:

  writ keys generate --data ./data
  writ keys show --data ./data > keys.jwks   # give it to whoever verifies receipts`
}

func (c *keysGenerateCmd) Run(_ context.Context, s streams) error {
	signer, trusted, err := c.Data.ReplaceSigner()
	if err != nil {
		return err
	}
	fmt.Fprintln(s.out, signer.KeyID())
	fmt.Fprintf(s.err,
		"writ: new signing key in %s; %s now holds %d public keys.\nA running server signs with it within seconds. "+
			"Give verifiers the new key set.\n",
		c.Data.SigningKey(), c.Data.JWKS(), len(trusted.IDs()))
	return nil
}

type keysShowCmd struct {
	Data datadir.Dir `default:"./data" help:"Data directory."`
}

func (c *keysShowCmd) Help() string {
	return `What the server publishes at /.well-known/jwks.json: every public key that ever
signed a receipt here. It holds no secret.

  writ keys show --data ./data > keys.jwks
  writ verify --keys keys.jwks result.json`
}

func (c *keysShowCmd) Run(_ context.Context, s streams) error {
	data, err := readInput(s, c.Data.JWKS())
	if err != nil {
		return err
	}
	fmt.Fprintf(s.out, "%s\n", data)
	return nil
}
