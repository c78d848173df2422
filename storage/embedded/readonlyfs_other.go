//go:build !unix

package embedded

import "os"

// lockShared has nothing to do: the lock of an open store can't be opened.
func lockShared(*os.File) error { return nil }
