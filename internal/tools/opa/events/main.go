// Events reads events of OPA's decision log, one a line, and prints each as OPA's own type EventV1 has it.
// A member that the type does not have is an error.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/open-policy-agent/opa/v1/plugins/logs"
)

func main() {
	if err := events(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func events(in io.Reader, out io.Writer) error {
	d := json.NewDecoder(in)
	d.DisallowUnknownFields()
	for n := 1; ; n++ {
		var e logs.EventV1
		err := d.Decode(&e)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = json.NewEncoder(out).Encode(&e)
		}
		if err != nil {
			return fmt.Errorf("event %d: %w", n, err)
		}
	}
}
