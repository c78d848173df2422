package ledger

import (
	"context"
	"errors"
	"fmt"

	"writ/ledger/receipt"
	"writ/storage"
)

// becomeSure finds out what a failed commit left behind: the chain's end and
// the meters. It returns nil if nothing is unsure, ErrClosed once ctx has
// ended, otherwise why the chain can't be extended.
func (c *committer) becomeSure(ctx context.Context) error {
	if ctx.Err() != nil {
		return ErrClosed
	}
	if !c.unsure {
		return nil
	}
	tip, err := c.storedTip(ctx)
	if err != nil {
		return fmt.Errorf("recovering from a failed commit: %w", err)
	}
	for n := len(c.doubtful); n > 0; n = len(c.doubtful) {
		if err := c.meters.reload(ctx, c.doubtful[n-1]); err != nil {
			return fmt.Errorf("recovering from a failed commit: %w", err)
		}
		c.doubtful = c.doubtful[:n-1]
	}
	c.tip, c.unsure = tip, false
	return nil
}

// storedTip returns the end of the chain in the store, which must be what the
// failed commit found or what it wanted to leave.
func (c *committer) storedTip(ctx context.Context) (receipt.Chain, error) {
	stored, err := lastTip(ctx, c.cfg.Store)
	if errors.Is(err, storage.ErrNotFound) && c.tip.Seq == 0 {
		return c.tip, nil
	}
	if err != nil {
		return receipt.Chain{}, err
	}
	if stored == c.tip {
		return stored, nil
	}
	for _, h := range c.sealed {
		if stored == c.tip.Next(h) {
			return stored, nil
		}
	}
	return receipt.Chain{}, fmt.Errorf("the store's last head, %d of chain %x, is none that follows head %d of chain %x",
		stored.Seq, stored.ID, c.tip.Seq, c.tip.ID)
}
