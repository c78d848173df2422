package remote

import (
	"cmp"
	"context"
	"io"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"writ.example/writ/authoring/workspace"
)

// Changes returns the last n changes of documents, the newest last. An empty kind or id is any.
func Changes(ctx context.Context, call workspace.Call, kind, id string, n int) ([]jsontext.Value, error) {
	filter := make(url.Values)
	for name, value := range map[string]string{"kind": kind, "id": id} {
		if value != "" {
			filter.Set(name, value)
		}
	}
	items, _, err := List(ctx, call, "/v1/changes", filter, n)
	slices.Reverse(items)
	return items, err
}

// PrintChanges prints changes of documents as a table.
func PrintChanges(w io.Writer, items []jsontext.Value) error {
	type change struct {
		Kind     string    `json:"kind"`
		ID       string    `json:"id"`
		Revision uint64    `json:"revision"`
		Digest   string    `json:"digest"`
		Actor    string    `json:"actor"`
		SignedAt time.Time `json:"signed_at"`
	}
	return table(w, []string{"TIME", "BY", "CHANGE", "KIND", "DOCUMENT", "REVISION"}, items, func(c change) []string {
		what := "stored"
		if c.Digest == "" {
			what = "removed"
		}
		by := cmp.Or(c.Actor, "writ")
		return []string{Time(c.SignedAt), by, what, c.Kind, c.ID, strconv.FormatUint(c.Revision, 10)}
	})
}
