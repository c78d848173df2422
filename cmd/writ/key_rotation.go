package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"writ.example/writ/storage"
	"writ.example/writ/storage/datadir"
	"writ.example/writ/storage/receipt"
)

// rotateEvery is how often the file of the signing key is read.
const rotateEvery = 2 * time.Second

// rotate watches the keys in a file, and signs with the one whose time has come. It publishes all
// public keys first, so that every receipt can be verified as soon as it exists. If the file
// cannot be read, rotate changes nothing and logs the error once.
func (n *node) rotate(ctx context.Context, data datadir.Dir, file, current string) {
	tick := time.NewTicker(rotateEvery)
	defer tick.Stop()
	published, settled := map[string]bool{current: true}, make(map[string]bool)
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
		if err == nil {
			err = n.withdraw(ctx, data, settled)
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

// withdraw stops publishing the retired keys that no row needs. It waits for [datadir.Notice], so that no replica
// signs with a key any more. It adds to settled each key about which it has decided.
func (n *node) withdraw(ctx context.Context, data datadir.Dir, settled map[string]bool) error {
	retired, err := data.Retired()
	if err != nil {
		return err
	}
	for kid, at := range retired {
		if settled[kid] || time.Since(at) < datadir.Notice {
			continue
		}
		needed, err := needsKey(ctx, n.store, kid)
		if err != nil {
			return fmt.Errorf("whether a row needs the retired key %s: %w", kid, err)
		}
		if needed {
			n.log.Info("a retired key stays published: rows need it", "kid", kid)
		} else {
			if err := n.docs.WithdrawKey(ctx, kid); err != nil {
				return fmt.Errorf("withdrawing the retired key %s: %w", kid, err)
			}
			if err := data.Withdraw(kid); err != nil {
				return err
			}
			n.withdrawn.Store(kid, true)
			n.log.Info("a retired key is not published any more: no row needs it", "kid", kid)
		}
		settled[kid] = true
	}
	return nil
}

// errFound ends a search.
var errFound = errors.New("found")

// needsKey reports whether a row or an entry of the history can be verified only with a key. If the history has
// imported rows, it needs every key: their verdicts may be under keys that no row names.
func needsKey(ctx context.Context, log storage.Log, kid string) (bool, error) {
	signed := make(map[string]bool) // the keys that heads of this store are signed with
	var chains [][16]byte
	err := log.Chains(ctx, func(tip receipt.Chain) error {
		chains = append(chains, tip.ID)
		return nil
	})
	if err != nil {
		return true, err
	}
	for _, chain := range chains {
		if err := log.Heads(ctx, chain, 1, func(h receipt.SignedHead) error {
			signed[h.KeyID] = true
			return nil
		}); err != nil {
			return true, err
		}
	}
	if signed[kid] {
		return true, nil
	}
	for _, chain := range chains {
		err := log.Rows(ctx, storage.RowQuery{Chain: chain, From: 1}, func(rows storage.HeadRows) error {
			if slices.ContainsFunc(rows.Records, func(r *storage.Record) bool { return !signed[r.Receipt.KeyID] }) {
				return errFound
			}
			return nil
		})
		if err != nil {
			return true, notFound(err)
		}
	}
	return false, nil
}

// notFound returns err unless it ended a search.
func notFound(err error) error {
	if errors.Is(err, errFound) {
		return nil
	}
	return err
}
