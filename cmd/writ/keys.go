package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"time"

	"writ.example/writ/storage/datadir"
	"writ.example/writ/storage/receipt"
)

// keyFiles are the files with the secrets of a deployment. All replicas share the secrets.
type keyFiles struct {
	SigningKey     string `placeholder:"FILE" help:"Private key that signs receipts, in PEM, or the URL of a signer that holds it: https://HOST/PATH or unix:SOCKET. Default: signing-key.pem in the data directory, made by the first start."`
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
	List     keysListCmd     `cmd:"" help:"List the keys of a data directory: which one signs, which one signs next."`
	Retire   keysRetireCmd   `cmd:"" help:"Retire a key that signs no more: it is published only as long as a row needs it."`
	Show     keysShowCmd     `cmd:"" help:"Print the public keys that verify this deployment's receipts, as a JSON Web Key Set."`
}

type keysGenerateCmd struct {
	Data       datadir.Dir   `default:"./data" help:"Data directory."`
	In         time.Duration `default:"5m" help:"How long the new key is published before it signs. 0 if the old one may be known to others."`
	SigningKey string        `placeholder:"FILE" help:"Private key that signs receipts, as for serve."`
}

func (c *keysGenerateCmd) Validate() error {
	if c.In < 0 {
		return errors.New("--in: want 0 or more, such as 5m")
	}
	return nil
}

func (c *keysGenerateCmd) Help() string {
	return `Makes a signing key in the data directory, or in the file that --signing-key names and
all replicas read. A server that runs publishes it within seconds, and signs with it after
--in, so that verifiers who keep the public keys know it by then. The public halves of all
keys stay in keys.jwks of the data directory, so that receipts of the old key keep
verifying. The first key of a file signs at once. To rotate:

  writ keys generate --data ./data
  writ keys show --data ./data > keys.jwks   # give it to whoever verifies receipts`
}

func (c *keysGenerateCmd) Run(_ context.Context, s streams) error {
	signing, trusted, err := c.Data.ReplaceSigner(c.SigningKey, c.In)
	if err != nil {
		return err
	}
	made, when := signing.Key, "A running server signs with it within seconds."
	if signing.Next != nil {
		made = signing.Next
		when = fmt.Sprintf("It is published within seconds, and signs from %s on.", signing.From.Format(time.RFC3339))
	}
	fmt.Fprintln(s.out, made.KeyID())
	fmt.Fprintf(s.err,
		"writ: new signing key in %s; %s now holds %d public keys.\n%s Give verifiers the new key set.\n",
		cmp.Or(c.SigningKey, c.Data.SigningKey()), c.Data.JWKS(), len(trusted.IDs()), when)
	return nil
}

type keysListCmd struct {
	Data       datadir.Dir `default:"./data" help:"Data directory."`
	SigningKey string      `placeholder:"FILE" help:"Private key that signs receipts, as for serve."`
}

func (c *keysListCmd) Help() string {
	return `A line a key, the one that signs first. A key that signs no more stays published, so that
its receipts verify, unless it is retired and no row needs it.

  writ keys list --data ./data`
}

func (c *keysListCmd) Run(_ context.Context, s streams) error {
	signing, err := datadir.ReadSigning(cmp.Or(c.SigningKey, c.Data.SigningKey()))
	if err != nil {
		return err
	}
	now := signing.At(time.Now())
	fmt.Fprintf(s.out, "%s  signs\n", now.KeyID())
	listed := []string{now.KeyID()}
	if signing.Next != nil && now != signing.Next {
		fmt.Fprintf(s.out, "%s  published, signs from %s\n", signing.Next.KeyID(), signing.From.Format(time.RFC3339))
		listed = append(listed, signing.Next.KeyID())
	}
	data, err := readInput(s, c.Data.JWKS())
	if err != nil {
		return err
	}
	known, err := receipt.ParseKeys(data)
	if err != nil {
		return &inputError{c.Data.JWKS(), err}
	}
	retired, err := c.Data.Retired()
	if err != nil {
		return err
	}
	for _, kid := range known.IDs() {
		if slices.Contains(listed, kid) {
			continue
		}
		state := "published"
		if at, ok := retired[kid]; ok {
			state += ", retired at " + at.Format(time.RFC3339)
		}
		fmt.Fprintf(s.out, "%s  %s\n", kid, state)
	}
	for _, kid := range slices.Sorted(maps.Keys(retired)) {
		if len(known.Only(kid).IDs()) == 0 {
			at := retired[kid].Format(time.RFC3339)
			fmt.Fprintf(s.out, "%s  retired at %s, not published: no row needs it\n", kid, at)
		}
	}
	return nil
}

type keysRetireCmd struct {
	Key        string      `arg:"" name:"kid" help:"Id of the key, as writ keys list prints it."`
	Data       datadir.Dir `default:"./data" help:"Data directory."`
	SigningKey string      `placeholder:"FILE" help:"Private key that signs receipts, as for serve."`
}

func (c *keysRetireCmd) Help() string {
	return `Notes in keys.retired that the key must not sign again: a start with it is refused. A key
that signs, or will, is not retired. A server that runs publishes the key as long as a row
of its history needs it, because receipts verify with it. If no row does, the server stops
publishing it five minutes later. An unused key is one less that could be stolen.

  writ keys list --data ./data
  writ keys retire 9ooey5gCssRcWGV-aofeliWsJKPTq4Gq6u6h5PSvFc8 --data ./data`
}

func (c *keysRetireCmd) Run(context.Context, streams) error {
	signing, err := datadir.ReadSigning(cmp.Or(c.SigningKey, c.Data.SigningKey()))
	if err != nil {
		return err
	}
	return c.Data.Retire(c.Key, signing, time.Now())
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
