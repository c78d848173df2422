package remote

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"writ.example/writ/authoring/workspace"
	"writ.example/writ/storage"
)

var errEnough = errors.New("there are enough")

// List returns the first n items of the list at path, and whether there are more.
func List(
	ctx context.Context, call workspace.Call, path string, filter url.Values, n int,
) (items []jsontext.Value, more bool, err error) {
	query := url.Values{"limit": {strconv.Itoa(min(n+1, storage.MaxPage))}}
	for name, values := range filter {
		query[name] = values
	}
	err = workspace.Pages(ctx, call, path+"?"+query.Encode(), func(page jsontext.Value) error {
		var of workspace.Page[jsontext.Value]
		into := any(&of)
		if page.Kind() == '[' {
			into = &of.Data
		}
		if err := json.Unmarshal(page, into); err != nil {
			return err //nolint:wrapcheck // what is wrong with the answer
		}
		if items = append(items, of.Data...); len(items) > n {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		return items[:n], true, nil
	}
	return items, false, err //nolint:wrapcheck // the server's own words
}

// Get reads the document at path.
func Get(ctx context.Context, call workspace.Call, path string) (doc jsontext.Value, err error) {
	_, err = call(ctx, workspace.Request{Method: http.MethodGet, Path: path, Want: http.StatusOK}, &doc)
	return doc, err //nolint:wrapcheck // the server's own words
}

// Refused reports whether the server refused a request because the credential lacks a scope.
func Refused(err error) bool { return answered(err, http.StatusForbidden) }

// told reports whether the server has said in an answer that it did nothing.
func told(err error) bool {
	var a *workspace.AnswerError
	return errors.As(err, &a) && a.Status < http.StatusInternalServerError
}

func answered(err error, status int) bool {
	var a *workspace.AnswerError
	return errors.As(err, &a) && a.Status == status
}
