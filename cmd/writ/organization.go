package main

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"writ/authoring/workspace"
)

// object is a JSON object.
type object map[string]any

// newClient returns a client of the server at an address.
func newClient(url, token string) workspace.Client {
	return workspace.Client{Base: strings.TrimRight(url, "/"), Token: token}
}

type serverFlags struct {
	URL    string `placeholder:"URL" help:"Server, such as http://localhost:3820."`
	APIKey string `placeholder:"KEY" help:"Credential of the organization. Better set as WRIT_API_KEY."`
}

// organization is an organization on a server. The credential says which.
type organization struct{ workspace.Patient }

// organization checks the flags and returns the organization.
func (f *serverFlags) organization(s streams) (o organization, err error) {
	u, err := url.Parse(f.URL)
	switch {
	case f.URL == "":
		return o, &usageError{"want --url URL (or the variable WRIT_URL)"}
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil:
		return o, &usageError{"--url: want an address such as http://localhost:3820"}
	case f.APIKey == "":
		return o, &usageError{"want a credential in WRIT_API_KEY (or --api-key KEY)"}
	}
	o.Client = newClient(f.URL, f.APIKey)
	o.Say = func(format string, args ...any) { fmt.Fprintf(s.err, "writ: "+format+"\n", args...) }
	return o, nil
}

// fetch reads all documents of the organization.
func (o organization) fetch(ctx context.Context) (*workspace.Server, error) {
	return workspace.Fetch(ctx, o.Call)
}

// compare compares the files in a directory with the organization. It reads the files first, so
// that the server gets no requests if a file is invalid.
func (o organization) compare(ctx context.Context, dir string) (*workspace.Plan, *workspace.Server, error) {
	w, err := workspace.Open(dir, conditions())
	if err != nil {
		//nolint:errorlint // whether it is another: of the directory, not of a document
		if path := cause(err); path != err {
			err = &inputError{name: dir, err: path}
		}
		return nil, nil, err
	}
	server, err := o.fetch(ctx)
	if err != nil {
		return nil, nil, err
	}
	plan, err := w.Compare(server)
	return plan, server, err
}
