package main

import (
	"context"
	"time"

	"writ.example/writ/storage/datadir"
)

// rotateEvery is how often the file of the signing key is read.
const rotateEvery = 2 * time.Second

// rotate watches the keys in a file, and signs with the one whose time has come. It publishes all
// public keys first, so that every receipt can be verified as soon as it exists. If the file
// cannot be read, rotate changes nothing and logs the error once.
func (n *node) rotate(ctx context.Context, data datadir.Dir, file, current string) {
	tick := time.NewTicker(rotateEvery)
	defer tick.Stop()
	published := map[string]bool{current: true}
	for failing := false; ; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		signing, err := datadir.ReadSigning(file)
		if err == nil {
			err = n.publish(ctx, data, signing, published)
		}
		if err == nil {
			if signer := signing.At(time.Now()); signer.KeyID() != current {
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

// publish publishes the public keys of a file to all replicas, unless published has them.
func (n *node) publish(ctx context.Context, data datadir.Dir, s datadir.Signing, published map[string]bool) error {
	if published[s.Key.KeyID()] && (s.Next == nil || published[s.Next.KeyID()]) {
		return nil
	}
	keys, err := data.TrustSigning(s)
	if err == nil {
		err = n.docs.PublishKeys(ctx, keys)
	}
	if err != nil {
		return err
	}
	published[s.Key.KeyID()] = true
	if s.Next != nil && !published[s.Next.KeyID()] {
		published[s.Next.KeyID()] = true
		n.log.Info("another key is published, and signs later", "kid", s.Next.KeyID(), "from", s.From)
	}
	return nil
}
