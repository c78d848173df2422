package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"writ.example/writ/api/operator"
	"writ.example/writ/examples"
)

// greet runs the demo if --demo is set. It tells a first user which files were made and how to
// evaluate an intent. Without --demo it registers nothing: the user may not want an example there.
func (n *node) greet(ctx context.Context, c *serveCmd, out io.Writer) error {
	if c.Demo {
		err := n.demo(ctx, out)
		switch {
		case errors.Is(err, errReported) && len(n.made) == 0:
			fmt.Fprintf(out,
				"The organization %s has changed since its first start, and so have its decisions.\n"+
					"A new --data directory shows the examples as they are.\n", examples.Organization)
		case err != nil:
			return fmt.Errorf("demo: %w", err)
		}
	}
	if len(n.made) > 0 {
		fmt.Fprint(out, "\nMade these keys, which you alone can read:\n")
		for _, key := range n.made {
			fmt.Fprintf(out, "  %s  %s\n", key.file, key.use)
		}
	}
	fmt.Fprintf(out, "\nwrit serves on %s; metrics and readiness on %s\n", n.url(), n.urlOf(n.admin))
	if (len(n.made) > 0 || c.Demo) && c.OperatorAlg == "HS256" {
		what := "Evaluate an intent"
		if !c.Demo {
			what = "Register an example policy in the organization " + examples.Organization +
				", and evaluate an intent"
		}
		curl, err := n.firstRequest(c)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "\nThree things to try:\n\n"+
			"1. Open %s/openapi in a browser: every endpoint, to read and to call.\n"+
			"2. Write a rule of your own and see what it changes: writ eval --help, writ check --help.\n"+
			"3. %s:\n\n%s\n\n", n.url(), what, curl)
	}
	if c.Demo && c.OperatorAlg == "HS256" && n.private() {
		token, err := operator.Sign(n.secret, examples.Organization, "demo", time.Now(), time.Hour)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "The console, signed in for an hour:\n%s\n", consoleLink(n.url(), token))
	}
	return nil
}
