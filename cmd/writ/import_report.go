package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"writ.example/writ/storage/evidence"
	"writ.example/writ/storage/ledger"
	"writ.example/writ/storage/transfer"
)

// report prints the counts of an import, and the parts that were not verified.
func (c *importCmd) report(w io.Writer, found *transfer.Checked, entry ledger.Import) {
	fmt.Fprintf(w, "%s: imported: organization %q: %s\n", c.File, entry.OrganizationID, carriedCounts(found.Footer))
	fmt.Fprintf(w, "%s: entry %s of %s, root %s\n", c.File, entry.ID, entry.ImportedAt.Format(time.RFC3339), entry.Root)
	fmt.Fprintf(w,
		"%s: %s: compare it with what the export printed: documents are not signed, nor is it that no row is missing\n",
		c.File, found.Footer.Digest)
	for _, err := range found.Unreadable {
		fmt.Fprintf(w, "%s: does not compile, and denies or tightens: %v\n", c.File, err)
	}
	if found.Older > 0 {
		fmt.Fprintf(w,
			"%s: not verified: agent, action, resource, cost, metadata and times of %s from before there were audit "+
				"digests\n", c.File, evidence.Count(found.Older, "row"))
	}
	if found.Footer.Removed > 0 {
		fmt.Fprintf(w, "%s: not verified: what is left of %s, whose intents stay decided\n", c.File,
			evidence.Count(int(found.Footer.Removed), "removed row"))
	}
	if len(found.Untrusted) > 0 {
		fmt.Fprintf(w, "%s: not published: keys that the file names and --keys does not have: %s\n", c.File,
			strings.Join(found.Untrusted, ", "))
	}
}
