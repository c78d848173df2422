package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"writ.example/writ/authoring/workspace"
	"writ.example/writ/cmd/remote"
)

// object is a JSON object.
type object map[string]any

// newClient returns a client of the server at an address.
func newClient(url, token string) workspace.Client {
	return workspace.Client{Base: strings.TrimRight(url, "/"), Token: token}
}

// serverFlags say which server a verb works with, and as whom.
type serverFlags struct {
	URL     string `name:"url" placeholder:"URL" help:"Server, such as http://localhost:3820."`
	APIKey  string `name:"api-key" placeholder:"KEY" help:"Credential of the organization. Better set as WRIT_API_KEY, or stored by writ login."`
	Profile string `placeholder:"NAME" help:"Profile of writ login. Default: the last one of --url."`

	trustFlags `embed:""`
}

// organization is an organization on a server. The credential says which.
type organization struct {
	workspace.Patient
	progress *progress
	profile  string // of writ login, or nothing
}

// organization checks the flags and returns the organization.
func (f *serverFlags) organization(s streams) (o organization, err error) {
	p, err := f.profile()
	if err != nil {
		return o, err
	}
	return newOrganization(s, p, f.from(p)), nil
}

// from says where the credential of a profile is from.
func (f *serverFlags) from(p remote.Profile) string {
	if p.Name != "" {
		return "of the profile " + p.Name + " (writ login replaces it)"
	}
	return "in WRIT_API_KEY"
}

// anybody is like profile, and known is false if there is no credential of the server in --url.
func (f *serverFlags) anybody() (p remote.Profile, known bool, err error) {
	p, err = f.profile()
	if err != nil && f.URL != "" && f.APIKey == "" && f.Profile == "" {
		at, bad := remote.ServerURL(f.URL)
		if all, _, unread := profiles(); bad == nil && unread == nil && !all.Has(at) {
			return remote.Profile{URL: at}, false, nil
		}
	}
	return p, err == nil, err
}

// newOrganization returns the organization of a profile. from says where its credential is from.
func newOrganization(s streams, p remote.Profile, from string) (o organization) {
	o.Client, o.Credential, o.progress = newClient(p.URL, p.Key), from, newProgress(s.err)
	o.profile = p.Name
	o.Say = func(format string, args ...any) {
		o.progress.end()
		fmt.Fprintf(s.err, "writ: "+format+"\n", args...)
	}
	return o
}

// show reads a document and prints it, for people or as the API has it.
func (f *serverFlags) show(
	ctx context.Context, s streams, path string, raw bool, print func(io.Writer, jsontext.Value) error,
) error {
	o, err := f.organization(s)
	if err != nil {
		return err
	}
	doc, err := remote.Get(ctx, o.Call, path)
	if err != nil {
		return err
	}
	return printOne(s.out, doc, raw, print)
}

// printOne prints a document, for people or as the API has it.
func printOne(w io.Writer, doc jsontext.Value, raw bool, print func(io.Writer, jsontext.Value) error) error {
	if raw {
		return remote.JSON(w, doc)
	}
	return print(w, doc)
}

// printAll prints the items of a list, for people, or one a line as the API has them.
func printAll(
	w io.Writer, items []jsontext.Value, raw bool, print func(io.Writer, []jsontext.Value) error,
) (err error) {
	if !raw {
		return print(w, items)
	}
	for i := 0; i < len(items) && err == nil; i++ {
		err = remote.JSON(w, items[i])
	}
	return err
}

// profile returns the server and its credential, from the flags or as writ login has stored them.
func (f *serverFlags) profile() (p remote.Profile, err error) {
	if f.URL != "" {
		if f.URL, err = remote.ServerURL(f.URL); err != nil {
			return p, &usageError{err.Error()}
		}
	}
	switch {
	case f.APIKey != "" && f.Profile != "":
		return p, &usageError{"--profile and WRIT_API_KEY (or --api-key) are two credentials: want one"}
	case f.APIKey != "" && f.URL == "":
		return p, &usageError{"want --url URL (or the variable WRIT_URL) beside WRIT_API_KEY"}
	case f.APIKey != "":
		return remote.Profile{URL: f.URL, Key: f.APIKey}, nil
	}
	all, _, err := profiles()
	if err != nil {
		return p, err
	}
	if p, err = all.Pick(f.Profile, f.URL); err != nil {
		return p, &usageError{err.Error()}
	}
	return p, nil
}

// profiles returns the user's profiles and the name of their file. A user without a home has none.
func profiles() (all remote.Profiles, name string, err error) {
	if name, err = remote.ProfilesFile(); err != nil {
		return nil, "", nil //nolint:nilerr // writ login, which needs the file, says so
	}
	all, err = remote.LoadProfiles(name)
	return all, name, err
}

// Call implements [workspace.Call]. On a terminal it says that it waits for the server.
func (o organization) Call(ctx context.Context, r workspace.Request, v any) (http.Header, error) {
	defer o.progress.wait("waiting for " + o.Base)()
	return o.Patient.Call(ctx, r, v)
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
