package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"writ/ledger/receipt"
)

type verifyCmd struct {
	Keys         string   `required:"" placeholder:"FILE|URL" help:"JSON Web Key Set of the keys to trust: a file, or an address such as http://localhost:3820/.well-known/jwks.json."`
	AllowExpired bool     `help:"Accept genuine receipts that have expired, as an audit of history does."`
	Receipts     []string `arg:"" name:"receipt" help:"Files that hold a receipt or a whole evaluation result; - is standard input."`
}

// Help explains what verifying proves.
func (c *verifyCmd) Help() string {
	return `Checks each receipt's signature and inclusion proof against the given keys, and
its expiry, without asking anybody. Keys that travel with a receipt are never
trusted. Prints a line a receipt; exits 1 when one does not verify and 3 when
one cannot be read.

What is verified is the decision, its id, its digest and its expiry. The reasons
that stand beside a receipt are covered by the digest alone, which takes the
intent to check: VerifyPayload of the Go package ledger/receipt does so.

  curl -s localhost:3820/.well-known/jwks.json > keys.jwks
  writ verify --keys keys.jwks result.json`
}

// Run verifies every receipt and reports on each.
func (c *verifyCmd) Run(ctx context.Context, s streams) error {
	keys, err := c.trusted(ctx, s)
	if err != nil {
		return err
	}
	var worst error
	for _, name := range c.Receipts {
		r, err := c.read(s, name)
		if err != nil {
			fmt.Fprintf(s.out, "%s: INVALID: %v\n", name, problem(err))
			worst = errReportedInvalid
			continue
		}
		now := time.Now()
		err = receipt.Verify(r, keys, now)
		if c.AllowExpired && errors.Is(err, receipt.ErrExpired) {
			err = nil
		}
		if err != nil {
			fmt.Fprintf(s.out, "%s: NOT VERIFIED: %v\n", name, err)
			if worst == nil {
				worst = errReported
			}
			continue
		}
		fmt.Fprintf(s.out, "%s: verified: %s, decision %s, %s, key %s\n", name, r.Decision, r.DecisionID, expiry(r, now), r.KeyID)
	}
	return worst
}

// expiry says when r expires or expired.
func expiry(r receipt.Receipt, now time.Time) string {
	at := time.Unix(r.Exp, 0).UTC().Format(time.RFC3339)
	if now.Unix() >= r.Exp {
		return "expired: at " + at
	}
	return "expires " + at
}

// read reads a bare receipt, or the receipt of an evaluation result.
func (c *verifyCmd) read(s streams, name string) (receipt.Receipt, error) {
	data, err := readInput(s, name)
	if err != nil {
		return receipt.Receipt{}, err
	}
	r, err := receipt.Parse(data)
	if err == nil {
		return r, nil
	}
	if res, resErr := receipt.ParseResult(data); resErr == nil {
		return res.Receipt, nil
	} else if strings.Contains(string(data), `"receipt"`) {
		return receipt.Receipt{}, resErr
	}
	return receipt.Receipt{}, err
}

// trusted loads the key set from a file or an address.
func (c *verifyCmd) trusted(ctx context.Context, s streams) (receipt.Keys, error) {
	var (
		data []byte
		err  error
	)
	if strings.HasPrefix(c.Keys, "http://") || strings.HasPrefix(c.Keys, "https://") {
		data, err = download(ctx, c.Keys)
	} else {
		data, err = readInput(s, c.Keys)
	}
	if err != nil {
		return receipt.Keys{}, err
	}
	keys, err := receipt.ParseKeys(data)
	if err != nil {
		return receipt.Keys{}, &inputError{name: c.Keys, err: err}
	}
	return keys, nil
}

// download gets a small document.
func download(ctx context.Context, url string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, fmt.Errorf("getting %s: %w", url, err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("getting %s: %s", url, resp.Status)
	}
	return io.ReadAll(io.LimitReader(resp.Body, 1<<20))
}
