// Command release makes the files of a release of writ, without a network but for modules that are not there yet.
//
//	release ROOT OUT     makes the release of the tree at ROOT
//	release key ROOT     makes the key that signs releases: RELEASE_KEY, and its public half in the tree
//
// RELEASE_KEY names the file of the secret key, and RELEASE_PASSWORD its password. Both are minisign's.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "release: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) != 2 {
		return errors.New("want ROOT OUT, or key ROOT")
	}
	file, password := os.Getenv("RELEASE_KEY"), os.Getenv("RELEASE_PASSWORD")
	if file == "" || password == "" {
		return errors.New("want RELEASE_KEY, the file of the key that signs, and RELEASE_PASSWORD")
	}
	if args[0] == "key" {
		return makeKey(file, password, filepath.Join(args[1], publicKeyFile))
	}
	root := args[0]
	key, err := readKey(file, password, filepath.Join(root, publicKeyFile))
	if err != nil {
		return err
	}
	r, err := identify(ctx, root)
	if err != nil {
		return err
	}
	if err := r.soaked(ctx); err != nil {
		return err
	}
	return r.make(ctx, args[1], targets, key)
}
