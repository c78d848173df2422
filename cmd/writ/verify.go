package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"writ/storage/datadir"
	"writ/storage/ledger"
	"writ/storage/receipt"
)

type verifyCmd struct {
	Keys         string `placeholder:"FILE|URL" help:"JSON Web Key Set of the keys to trust: a file, or an address such as http://localhost:3820/.well-known/jwks.json. Required but with --data, whose own it is by default."`
	AllowExpired bool   `help:"Accept genuine receipts that have expired, as an audit of history does."`
	Intent       string `placeholder:"FILE" help:"ActionIntent that was decided: check that it is the one of the digest."`
	SessionID    string `name:"session-id" placeholder:"ID" help:"Session that the intent named, which its digest covers; a row of the history says it."`
	Policy       string `placeholder:"FILE" help:"ActionPolicy in the version that decided: check that it is the one of the digest, and that the reasons follow from it."`
	Chain        bool   `help:"Verify a whole history instead of receipts: that of --data, --url or --store mongodb."`
	storeFlags   `embed:""`
	Data         datadir.Dir `placeholder:"DIR" help:"Data directory whose history to verify; no server may be using it."`
	URL          string      `placeholder:"URL" help:"Server whose history to verify, as far as it shows it."`
	APIKey       string      `placeholder:"KEY" help:"Credential for --url, of the scope history:read. Better set as WRIT_API_KEY."`
	Anchor       string      `placeholder:"FILE" help:"Heads (one a line), receipt or evaluation result that was kept: check that the history goes on from it."`
	Receipts     []string    `arg:"" optional:"" name:"receipt" help:"Files that hold a receipt, a whole evaluation result or a row of the history; - is standard input."`
}

func (c *verifyCmd) Help() string {
	return `Checks each receipt's signature and inclusion proof against the given keys, and
its expiry, without asking anybody. Keys that travel with a receipt are never
trusted. Prints a line a receipt and below it what was checked beside it; exits 1
when one does not verify and 3 when one cannot be read.

What is verified is the decision, its id, its digest and its expiry. The reasons
that stand beside a receipt are covered by the digest alone, which takes the
intent and the policy to check: --intent and --policy.

  curl -s localhost:3820/.well-known/jwks.json > keys.jwks
  writ verify --keys keys.jwks result.json
  writ verify --keys keys.jwks --intent intent.json --policy policy.json result.json

--chain verifies a whole history: that every head is signed and follows the one
before it, and that every row is the one that its head signs. Of a data directory
also that no row is missing, and that rows are found by what leads to them; it
changes nothing there. It says what is not proved, prints the last head, and
exits 1 when the history is broken, naming the first place, and 3 when it cannot
be read. Keep the head elsewhere: with --anchor it proves that the history was not
replaced by an older copy or another one.

  writ verify --chain --data ./data | tail -n 1 > anchor.json
  writ verify --chain --data ./data --keys keys.jwks --anchor anchor.json

--store mongodb reads the database at one moment, as wholly as a directory, while
replicas go on:

  WRIT_MONGODB_URI=mongodb://db1,db2,db3/?replicaSet=rs \
    writ verify --chain --store mongodb --keys keys.jwks --anchor anchor.json`
}

// Run verifies every receipt and reports on each, or a history.
func (c *verifyCmd) Run(ctx context.Context, s streams) error {
	switch {
	case c.Chain:
		return c.chain(ctx, s)
	case c.Anchor != "":
		return &usageError{"--anchor: want --chain beside it"}
	case len(c.Receipts) == 0:
		return &usageError{`expected "<receipt> ...", or --chain`}
	case c.Keys == "":
		return &usageError{"missing flags: --keys=FILE|URL"}
	}
	keys, err := c.trusted(ctx, s)
	if err != nil {
		return err
	}
	g, err := c.evidence(s)
	if err != nil {
		return err
	}
	var worst error
	for _, name := range c.Receipts {
		d, err := c.read(s, name)
		if err != nil {
			fmt.Fprintf(s.out, "%s: INVALID: %v\n", name, problem(err))
			worst = errReportedInvalid
			continue
		}
		if err := c.verify(s.out, name, d, keys, g); err != nil {
			fmt.Fprintf(s.out, "%s: NOT VERIFIED: %v\n", name, err)
			if worst == nil {
				worst = errReported
			}
		}
	}
	return worst
}

// verify says what was verified of d, or returns why it does not verify.
func (c *verifyCmd) verify(w io.Writer, name string, d held, keys receipt.Keys, g evidence) error {
	now := time.Now()
	err := receipt.Verify(d.receipt, keys, now)
	if c.AllowExpired && errors.Is(err, receipt.ErrExpired) {
		err = nil
	}
	if err != nil {
		return err
	}
	if d.row != nil {
		if err := ledger.VerifySettlement(d.row, keys); err != nil {
			return err
		}
	}
	said, err := g.check(d)
	if err != nil {
		return err
	}
	r := d.receipt
	fmt.Fprintf(w, "%s: verified: %s, decision %s, %s, key %s\n", name, r.Decision, r.DecisionID, expiry(r, now),
		r.KeyID)
	for _, line := range said {
		fmt.Fprintf(w, "%s: %s\n", name, line)
	}
	return nil
}

// expiry says when r expires or expired.
func expiry(r receipt.Receipt, now time.Time) string {
	at := time.Unix(r.Exp, 0).UTC().Format(time.RFC3339)
	if now.Unix() >= r.Exp {
		return "expired: at " + at
	}
	return "expires " + at
}

func (c *verifyCmd) read(s streams, name string) (held, error) {
	data, err := readInput(s, name)
	if err != nil {
		return held{}, err
	}
	return parseHeld(data)
}

func (c *verifyCmd) trusted(ctx context.Context, s streams) (receipt.Keys, error) {
	return readKeys(ctx, s, cmp.Or(c.Keys, c.Data.JWKS()))
}

// readKeys reads the key set of a file or an address.
func readKeys(ctx context.Context, s streams, name string) (receipt.Keys, error) {
	var (
		data []byte
		err  error
	)
	if strings.HasPrefix(name, "http://") || strings.HasPrefix(name, "https://") {
		data, err = download(ctx, name)
	} else {
		data, err = readInput(s, name)
	}
	if err != nil {
		return receipt.Keys{}, err
	}
	keys, err := receipt.ParseKeys(data)
	if err != nil {
		return receipt.Keys{}, &inputError{name: name, err: err}
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
