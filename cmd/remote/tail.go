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

	"writ/authoring/workspace"
	"writ/internal/printable"
)

// Tail prints decisions, the newest last.
type Tail struct {
	Out    io.Writer
	JSON   bool
	Filter url.Values // the parameters of GET /v1/authorizations
	Say    func(format string, args ...any)

	printed map[string]bool // the decisions that Last has printed
	n       int
}

const historyPath = "/v1/authorizations"

// Last prints the last n decisions, those that are printed already not again.
func (t *Tail) Last(ctx context.Context, call workspace.Call, n int) error {
	if t.printed == nil {
		t.printed, t.n = make(map[string]bool), n
		if !t.JSON {
			fmt.Fprintln(t.Out, DecisionColumns())
		}
	}
	rows, _, err := List(ctx, call, historyPath, t.Filter, n)
	if err != nil {
		return err
	}
	for _, row := range slices.Backward(rows) {
		id, err := t.print(row)
		if err != nil {
			return err
		}
		t.printed[id] = true
	}
	return nil
}

// print prints a decision unless Last has, and returns its id.
func (t *Tail) print(row jsontext.Value) (id string, err error) {
	var d struct {
		ID string `json:"decision_id"`
	}
	if err := json.Unmarshal(row, &d); err != nil {
		return "", fmt.Errorf("reading the history: %w", err)
	}
	if t.printed[d.ID] {
		return d.ID, nil
	}
	if t.JSON {
		return d.ID, JSON(t.Out, row)
	}
	line, err := DecisionLine(row)
	if err == nil {
		_, err = fmt.Fprintln(t.Out, line)
	}
	return d.ID, err //nolint:wrapcheck // of the standard output
}

// maxEvent is the longest event that is read, in bytes.
const maxEvent = 8 << 20

// Follow prints the decisions since Last, as they are made, until ctx ends. It connects again after a lost
// connection, and prints what it has missed.
func (t *Tail) Follow(ctx context.Context, server workspace.Patient, call workspace.Call) error {
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
			t.Say("the connection to %s is lost: again in %v", server.Base, wait.Round(100*time.Millisecond))
		},
		ResponseValidator: func(resp *http.Response) error {
			if resp.StatusCode != http.StatusOK {
				body, _ := io.ReadAll(io.LimitReader(resp.Body, maxEvent)) // what was read of it explains enough
				return server.Explain(&workspace.AnswerError{Status: resp.StatusCode, Header: resp.Header, Body: body})
			}
			// The stream begins when it is opened: decisions since Last are asked for by their list.
			if resp.Request.Header.Get("Last-Event-ID") == "" {
				return t.Last(ctx, call, max(t.n, maxPage))
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
	_, err := t.print(jsontext.Value(e.Data))
	return err
}
