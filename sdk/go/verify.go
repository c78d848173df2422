package writ

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"writ.example/writ/storage/receipt"
)

// Verify checks the signature of a receipt with the public keys of the server, and that the receipt has
// not expired. It fetches the keys once, and again if the receipt names a key that it does not know. It does
// not say which intent the receipt is of. A caller that does not trust the server sets [Config.Keys].
func (c *Client) Verify(ctx context.Context, r Receipt) error {
	c.mu.Lock()
	keys := c.keys
	c.mu.Unlock()
	if !slices.Contains(keys.IDs(), r.KeyID) {
		a, err := c.do(ctx, call{method: http.MethodGet, path: "/.well-known/jwks.json", repeats: true})
		if err != nil {
			return err
		}
		if keys, err = receipt.ParseKeys(a.body); err != nil {
			return errors.Join(ErrAnswer, err)
		}
		c.mu.Lock()
		c.keys = keys
		c.mu.Unlock()
	}
	return receipt.Verify(r, keys, time.Now())
}
