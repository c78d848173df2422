package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"writ.example/writ/cmd/remote"
)

// defaultProfile is the profile of users who have one.
const defaultProfile = "default"

type loginCmd struct {
	URL string `name:"url" required:"" placeholder:"URL" help:"Server, such as https://writ.example."`

	trustFlags `embed:""`

	Profile string `placeholder:"NAME" help:"Name under which the credential is stored. Default: default."`
	JSON    bool   `name:"json" help:"Print a JSON object of the profile, without the key."`
}

func (c *loginCmd) Help() string {
	return `Asks for an API key or an operator token, on the terminal or from standard input,
has the server say whose it is, and stores it in writ/profiles.json in the user's
configuration directory, which the user alone can read. The key is sent to this server
and to no other one. WRIT_URL and WRIT_API_KEY, where they are set, come first.

  writ login --url https://writ.example
  writ login --url https://stage.example --profile stage <key.txt
  writ status --profile stage`
}

// maxKey is more bytes than any credential has.
const maxKey = 64 << 10

func (c *loginCmd) Run(ctx context.Context, s streams) error {
	server, err := remote.ServerURL(c.URL)
	if err != nil {
		return &usageError{err.Error()}
	}
	name, err := remote.ProfilesFile()
	if err != nil {
		return err
	}
	all, err := remote.LoadProfiles(name)
	if err != nil {
		return err
	}
	p := remote.Profile{Name: cmp.Or(c.Profile, defaultProfile), URL: server}
	if _, err := all.With(p); err != nil {
		return &usageError{err.Error()}
	}
	if p.Key, err = readKey(s, server); err != nil {
		return err
	}
	o := newOrganization(s, p, "that was given")
	who, err := remote.Whoami(ctx, o.Call)
	if err != nil {
		return err
	}
	if all, err = all.With(p); err == nil {
		err = all.Save(name)
	}
	if err != nil {
		return err
	}
	if c.JSON {
		return remote.JSON(s.out, object{"profile": p.Name, "url": p.URL, "file": name, "credential": who})
	}
	s.say("logged in to %s as %s: profile %s in %s", server, who, p.Name, name)
	return nil
}

// readKey asks for a credential on the terminal, without showing it, or reads it from standard input.
func readKey(s streams, server string) (string, error) {
	in, ok := s.in.(*os.File)
	var key []byte
	var err error
	if ok && term.IsTerminal(int(in.Fd())) {
		fmt.Fprintf(s.err, "API key or operator token of %s: ", server)
		key, err = term.ReadPassword(int(in.Fd()))
		fmt.Fprintln(s.err)
	} else {
		key, err = io.ReadAll(io.LimitReader(s.in, maxKey))
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("reading the key: %w", err)
	}
	text := strings.TrimSpace(string(key))
	if err := remote.CheckKey(text); err != nil {
		return "", &usageError{err.Error()}
	}
	return text, nil
}
