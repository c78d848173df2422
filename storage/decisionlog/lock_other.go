//go:build !unix

package decisionlog

import "os"

// lock does nothing.
func lock(*os.File) error { return nil }
