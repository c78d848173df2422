package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"writ/authoring/workspace"
)

// maxWait is the longest that a server may ask a verb to wait.
const maxWait = 5 * time.Minute

type serverFlags struct {
	URL    string `placeholder:"URL" help:"Server, such as http://localhost:3820."`
	APIKey string `placeholder:"KEY" help:"Credential of the organization. Better set as WRIT_API_KEY."`
}

// organization is the organization of a credential, on a server.
type organization struct {
	client client
	say    func(format string, args ...any) // to who waits
}

// organization checks the flags.
func (f *serverFlags) organization(s streams) (*organization, error) {
	u, err := url.Parse(f.URL)
	switch {
	case f.URL == "":
		return nil, &usageError{"want --url URL (or the variable WRIT_URL)"}
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil:
		return nil, &usageError{"--url: want an address such as http://localhost:3820"}
	case f.APIKey == "":
		return nil, &usageError{"want a credential in WRIT_API_KEY (or --api-key KEY)"}
	}
	say := func(format string, args ...any) { fmt.Fprintf(s.err, "writ: "+format+"\n", args...) }
	return &organization{client{base: strings.TrimRight(f.URL, "/"), token: f.APIKey}, say}, nil
}

// call implements [workspace.Call]. It waits as long as a limit of the server asks.
func (o *organization) call(ctx context.Context, r workspace.Request, v any) (http.Header, error) {
	for {
		header, err := o.client.request(ctx, r, v)
		var answer *answerError
		if !errors.As(err, &answer) {
			return header, err
		}
		seconds, bad := strconv.Atoi(answer.header.Get("Retry-After"))
		wait := time.Duration(seconds) * time.Second
		if answer.status != http.StatusTooManyRequests || bad != nil || wait < 0 || wait > maxWait {
			return nil, o.explain(answer)
		}
		o.say("the server asks to wait %v", wait)
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(wait):
		}
	}
}

func (o *organization) explain(a *answerError) error {
	var problem struct {
		Code   string `json:"code"`
		Detail string `json:"detail"`
		Errors []struct {
			Field   string `json:"field"`
			Message string `json:"message"`
		} `json:"errors"`
	}
	if err := json.Unmarshal(a.body, &problem); err != nil || problem.Code == "" {
		return fmt.Errorf("%s does not answer as a writ server does: status %d to %s", o.client.base, a.status,
			"a request of writ")
	}
	text := problem.Detail
	for _, e := range problem.Errors {
		text += "\n  " + e.Field + ": " + e.Message
	}
	if a.status == http.StatusUnauthorized {
		return fmt.Errorf("%s does not accept the credential in WRIT_API_KEY", o.client.base)
	}
	return fmt.Errorf("%s: %s", problem.Code, strings.TrimSpace(text))
}

// fetch reads what the organization has.
func (o *organization) fetch(ctx context.Context) (*workspace.Server, error) {
	return workspace.Fetch(ctx, o.call)
}

// compare compares the files of a directory with what the organization has. Files are
// read first: nobody is asked about what is invalid.
func (o *organization) compare(ctx context.Context, dir string) (*workspace.Plan, *workspace.Server, error) {
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
