package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"

	"writ.example/writ/storage/datadir"
)

type debugCmd struct {
	Bundle bundleCmd `cmd:"" help:"Write what helps to understand a server that runs into a file, without secrets."`
}

type bundleCmd struct {
	adminFlags `embed:""`
	Out        string `short:"o" name:"out" default:"writ-bundle.tar.gz" placeholder:"FILE" help:"File to write, which must not exist."`
}

func (c *bundleCmd) Help() string {
	return `Asks the admin address, which takes five seconds, and writes a tar archive: versions, what
writ doctor says, the settings, the last lines of the log, the metrics and profiles of
processor, memory and goroutines. Of settings that can have a secret it says only whether they
are set. Nothing is sent anywhere: look at the file, then give it to whoever helps.

  writ debug bundle
  writ debug bundle --admin-url http://127.0.0.1:3821 -o bundle.tar.gz`
}

func (c *bundleCmd) Run(ctx context.Context, s streams) (err error) {
	f, err := os.OpenFile(c.Out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists: name another file by --out", c.Out)
	}
	if err != nil {
		return err
	}
	defer func() {
		if err != nil { // part of a bundle is of no use
			err = errors.Join(err, os.Remove(c.Out))
		}
	}()
	bar := newProgress(s.err)
	done := bar.wait("waiting for the profiles of " + c.AdminURL)
	body, err := askAdmin(ctx, c.AdminURL, http.MethodGet, bundlePath,
		"it is no admin address of a writ that has bundles")
	if err == nil {
		_, err = io.Copy(f, body)
		err = errors.Join(err, body.Close())
	}
	done()
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = datadir.Sync(filepath.Dir(c.Out))
	}
	if err == nil {
		s.say("%s: without secrets: look at it before you give it away", c.Out)
	}
	return err
}
