// Command alerts exits 1 and says why if Prometheus would refuse a file of
// alerting rules. It is promtool check rules without all that promtool links.
package main

import (
	"fmt"
	"os"

	"github.com/prometheus/prometheus/model/rulefmt"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: alerts FILE")
		os.Exit(2)
	}
	if _, errs := rulefmt.ParseFile(os.Args[1], false); len(errs) > 0 {
		for _, err := range errs {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(1)
	}
}
