package main

import (
	"context"
	"time"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
)

// jwks returns the public keys that any process on this store has published. If the store
// cannot be read, it returns the keys in this data directory.
func (n *node) jwks() []byte {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	published, err := n.docs.PublicKeys(ctx)
	if err != nil {
		n.log.Warn("the public keys that others sign with could not be read", "problem", err)
	}
	keys := n.trusted.With(published)
	n.withdrawn.Range(func(kid, _ any) bool {
		keys = keys.Without(kid.(string))
		return true
	})
	return keys.JWKS()
}

// nameUnreadable logs every policy whose newest version does not compile. An older writ
// accepted that version. Such a policy denies until somebody registers another version.
func (n *node) nameUnreadable(ctx context.Context) {
	err := n.docs.EachPolicy(ctx, func(p *engine.ActionPolicy) error {
		if _, err := engine.CompilePolicy(p); err != nil {
			n.log.Error("a stored policy no longer compiles and denies everything: register a version that does",
				"organization", p.OrganizationID, "policy", p.PolicyID, "version", p.Version, "problem", err)
		}
		return nil
	})
	if err != nil && ctx.Err() == nil {
		n.log.Error("could not look for stored policies that no longer compile", "error", err)
	}
}

// nameUnfinished logs every organization whose import is not finished. Some decisions from its
// old deployment may be missing, so an intent may be decided again.
func (n *node) nameUnfinished(ctx context.Context) {
	err := n.store.View(ctx, func(r storage.Reader) error {
		return r.Scan(storage.Query{Kind: storage.ImportKind, Every: true},
			func(_ []byte, d storage.Document) (bool, error) {
				n.log.Error("the import of an organization is not finished: run writ import again, or with --abandon",
					"organization", d.Org)
				return true, nil
			})
	})
	if err != nil && ctx.Err() == nil {
		n.log.Error("could not look for imports that are not finished", "error", err)
	}
}
