package main

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"writ.example/writ/storage/datadir"
	"writ.example/writ/storage/evidence"
)

type verifyCmd struct {
	Keys         string `placeholder:"FILE|URL" help:"JSON Web Key Set of the keys to trust: a file, or an address such as http://localhost:3820/.well-known/jwks.json. Required without --data, whose keys.jwks is the default."`
	AllowExpired bool   `help:"Accept genuine receipts that have expired, as an audit of history does."`
	Intent       string `placeholder:"FILE" help:"ActionIntent that was decided: check that it is the one of the digest."`
	SessionID    string `name:"session-id" placeholder:"ID" help:"Session of the intent, which its digest covers. A row of the history has it."`
	Policy       string `placeholder:"FILE" help:"ActionPolicy in the version that decided: check that it is the one of the digest, and that the reasons follow from it."`
	Chain        bool   `help:"Verify a whole history instead of receipts: that of --data, --url or --store mongodb. With --url it wants the scope history:read."`
	storeFlags   `embed:""`
	serverFlags  `embed:""`
	Data         datadir.Dir `placeholder:"DIR" help:"Data directory whose history to verify; no server may be using it."`
	Anchor       string      `placeholder:"FILE" help:"Heads (one a line), receipt or evaluation result that was kept: check that the history goes on from it."`
	Resume       string      `placeholder:"FILE" help:"File of heads up to which an earlier run has verified the history: check that the history goes on from them, verify only what was signed after them, and keep the last heads there. If there is no such file, the whole history is verified."`
	Receipts     []string    `arg:"" optional:"" name:"receipt" help:"Files that hold a receipt, a whole evaluation result or a row of the history; - is standard input."`
}

func (c *verifyCmd) Help() string {
	return `Checks each receipt's signature and inclusion proof against the given keys, and
its expiry, offline. Keys that travel with a receipt are never trusted. Prints a
line for each receipt, and below it the other checks. Exits 1 when a receipt does
not verify and 3 when one cannot be read.

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

--resume verifies only what was signed since the last run with the same file, also
days later and in another process. Nothing in the file changes unless all of it is
proved. It does not notice what was changed or lost under earlier heads since, so
verify the whole history from time to time.

  writ verify --chain --data ./data --keys keys.jwks --resume heads.json

--url verifies what a server shows of its history, as the credential in WRIT_API_KEY or
a profile of writ login. The keys are for you to bring.

  writ verify --chain --url https://writ.example --keys keys.jwks --anchor anchor.json

--store mongodb reads the database at one moment, as wholly as a directory, while
replicas go on:

  WRIT_MONGODB_URI=mongodb://db1,db2,db3/?replicaSet=rs \
    writ verify --chain --store mongodb --keys keys.jwks --anchor anchor.json`
}

// Run verifies a history or every receipt, and reports on each receipt.
func (c *verifyCmd) Run(ctx context.Context, s streams) error {
	switch {
	case c.Chain:
		return c.chain(ctx, s)
	case c.Anchor != "" || c.Resume != "":
		return &usageError{"--anchor and --resume: want --chain beside it"}
	case len(c.Receipts) == 0:
		return &usageError{`expected "<receipt> ...", or --chain`}
	case c.Keys == "":
		return &usageError{"missing flags: --keys=FILE|URL"}
	}
	check, err := c.check(ctx, s)
	if err != nil {
		return err
	}
	var worst error
	for _, name := range c.Receipts {
		data, err := readInput(s, name)
		var held evidence.Held
		if err == nil {
			held, err = evidence.Parse(data)
		}
		if err != nil {
			fmt.Fprintf(s.out, "%s: INVALID: %v\n", name, problem(err))
			worst = errReportedInvalid
			continue
		}
		said, err := check.Verify(held, time.Now())
		if err != nil {
			said = []string{fmt.Sprintf("NOT VERIFIED: %v", err)}
			worst = cmp.Or(worst, errReported)
		}
		for _, line := range said {
			fmt.Fprintf(s.out, "%s: %s\n", name, line)
		}
	}
	return worst
}

// check reads the keys, the intent and the policy that receipts are checked against.
func (c *verifyCmd) check(ctx context.Context, s streams) (check evidence.Check, err error) {
	check.AllowExpired = c.AllowExpired
	if check.Keys, err = c.trusted(ctx, s); err != nil {
		return check, err
	}
	if c.Intent != "" {
		if check.Intent, err = readIntent(s, c.Intent); err != nil {
			return check, err
		}
		check.Intent.SessionID = c.SessionID
	}
	if c.Policy != "" {
		check.Policy, err = compiledPolicy(s, c.Policy)
	}
	return check, err
}
