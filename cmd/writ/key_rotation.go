package main

import (
	"context"
	"time"

	"writ.example/writ/storage/datadir"
	"writ.example/writ/storage/receipt"
)

// rotateEvery is how often the file of the signing key is read.
const rotateEvery = 2 * time.Second

// rotate watches the key in a file and signs with the key when it changes. It publishes the
// public key first, so that every receipt can be verified as soon as it exists. If the file
// cannot be read, rotate changes nothing and logs the error once.
func (n *node) rotate(ctx context.Context, data datadir.Dir, file, current string) {
	tick := time.NewTicker(rotateEvery)
	defer tick.Stop()
	for failing := false; ; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		signer, err := datadir.ReadSigner(file)
		if err == nil && signer.KeyID() != current {
			if err = n.publish(ctx, data, signer); err == nil {
				n.ledger.SignWith(signer)
				current = signer.KeyID()
				n.log.Info("receipts are signed with another key from now on", "kid", current)
			}
		}
		if err != nil && !failing && ctx.Err() == nil {
			n.log.Error("the signing key could not be read again: the one before signs on", "error", err)
		}
		failing = err != nil
	}
}

// publish publishes the public key of s to all replicas.
func (n *node) publish(ctx context.Context, data datadir.Dir, s *receipt.Signer) error {
	keys, err := data.TrustKey(s.Public())
	if err != nil {
		return err
	}
	return n.docs.PublishKeys(ctx, keys)
}
