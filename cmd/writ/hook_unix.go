//go:build unix

package main

import (
	"os"
	"syscall"
)

// deadly are the signals that end a process. A hook that they end would let the call run.
var deadly = []os.Signal{
	syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGPIPE,
	syscall.SIGALRM, syscall.SIGUSR1, syscall.SIGUSR2,
}
