package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/tmaxmax/go-sse"

	"writ.example/writ/authoring/workspace"
	"writ.example/writ/internal/printable"
	"writ.example/writ/storage"
)

// Tail prints decisions, the newest last.
type Tail struct {
	Out    io.Writer
	JSON   bool
	Filter url.Values // the parameters of GET /v1/authorizations
	Say    func(format string, args ...any)

	seen map[string]bool // decisions that are not to be printed any more
}

const historyPath = "/v1/authorizations"

// Last prints the last n decisions.
func (t *Tail) Last(ctx context.Context, call workspace.Call, n int) error {
	return t.list(ctx, call, n, n)
}

// list reads the last most decisions, and prints the last n of them that were not seen.
func (t *Tail) list(ctx context.Context, call workspace.Call, n, most int) error {
	rows, _, err := List(ctx, call, historyPath, t.Filter, most)
	if err != nil {
		return err
	}
	if t.seen == nil {
		t.seen = make(map[string]bool)
		if !t.JSON {
			fmt.Fprintln(t.Out, DecisionColumns())
		}
	}
	for i, row := range slices.Backward(rows) {
		if err := t.print(row, i < n); err != nil {
			return err
		}
	}
	return nil
}

// print prints a decision unless it was seen, or is only to be taken for seen.
func (t *Tail) print(row jsontext.Value, show bool) error {
	var d struct {
		ID string `json:"decision_id"`
	}
	if err := json.Unmarshal(row, &d); err != nil {
		return fmt.Errorf("reading the history: %w", err)
	}
	if t.seen[d.ID] {
		return nil
	}
	t.seen[d.ID] = true
	switch {
	case !show:
		return nil
	case t.JSON:
		return JSON(t.Out, row)
	}
	line, err := DecisionLine(row)
	if err == nil {
		_, err = fmt.Fprintln(t.Out, line)
	}
	return err //nolint:wrapcheck // of the standard output
}

// maxEvent is the longest event that is read, in bytes.
const maxEvent = 8 << 20

// Follow prints the last n decisions, and then each one as it is made, until ctx ends. It connects again after
// a lost connection, and prints what it has missed.
func (t *Tail) Follow(ctx context.Context, server workspace.Patient, call workspace.Call, n int) error {
	if err := t.list(ctx, call, n, max(n, storage.MaxPage)); err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	address := server.Base + historyPath + "/stream?" + t.Filter.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err //nolint:wrapcheck // cannot happen
	}
	req.Header.Set("Authorization", "Bearer "+server.Token)
	client := sse.Client{
		HTTPClient: workspace.Direct,
		OnRetry: func(_ error, wait time.Duration) {
			if ctx.Err() != nil {
				return
			}
			t.Say("the connection to %s is lost: again in %v", server.Base, wait.Round(100*time.Millisecond))
		},
		ResponseValidator: func(resp *http.Response) error {
			if resp.StatusCode != http.StatusOK {
				body, _ := io.ReadAll(io.LimitReader(resp.Body, maxEvent)) // what was read of it explains enough
				return server.Explain(&workspace.AnswerError{Status: resp.StatusCode, Header: resp.Header, Body: body})
			}
			// The stream begins when it is opened. Another list has the decisions since the first list.
			if resp.Request.Header.Get("Last-Event-ID") == "" {
				return t.list(ctx, call, storage.MaxPage, storage.MaxPage)
			}
			return nil
		},
		Backoff: sse.Backoff{InitialInterval: time.Second, Multiplier: 1.5, Jitter: 0.5, MaxInterval: 15 * time.Second},
	}
	connection := client.NewConnection(req)
	connection.Buffer(nil, maxEvent)
	connection.SubscribeToAll(func(e sse.Event) {
		if err := t.event(e); err != nil {
			stop(err)
		}
	})
	err = connection.Connect()
	var failed *sse.ConnectionError
	switch {
	case ctx.Err() != nil && !errors.Is(context.Cause(ctx), context.Canceled):
		return context.Cause(ctx) //nolint:wrapcheck // an error of print
	case ctx.Err() != nil:
		return nil
	case errors.As(err, &failed):
		return failed.Err
	}
	return err //nolint:wrapcheck // only a ConnectionError can come
}

// event prints an event of the stream.
func (t *Tail) event(e sse.Event) error {
	switch {
	case e.Data == "": // it has a place in the stream alone
		return nil
	case e.Type == "skipped":
		var skipped struct {
			Count int64  `json:"count"`
			From  string `json:"from"`
		}
		if err := json.Unmarshal([]byte(e.Data), &skipped); err != nil {
			return fmt.Errorf("reading the stream: %w", err)
		}
		t.Say("%d decisions are not shown here: writ history tail has them, from %s", skipped.Count,
			printable.Text(skipped.From))
		return nil
	}
	return t.print(jsontext.Value(e.Data), true)
}
