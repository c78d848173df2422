//go:build !unix

package embedded

import "os"

// lockShared does nothing. It is not needed, because the lock file of an open store can't be opened
// here.
func lockShared(*os.File) error { return nil }
