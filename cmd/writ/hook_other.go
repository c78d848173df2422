//go:build !unix

package main

import (
	"os"
	"syscall"
)

// deadly are the signals that the go runtime hears on Windows.
var deadly = []os.Signal{syscall.SIGINT, syscall.SIGTERM}
