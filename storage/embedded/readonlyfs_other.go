//go:build !unix

package embedded

import "os"

// lockShared has nothing to do: where a store is open, its lock can't be opened.
func lockShared(*os.File) error { return nil }
