package writ

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	// silence is how long a stream may be silent. The server sends something every 15 seconds.
	silence     = 30 * time.Second
	streamPause = 250 * time.Millisecond
)

// Event is an event of a stream: a row of the history, or a number of rows that were skipped.
type Event struct {
	ID  string          // resumes the stream after this event
	Row json.RawMessage // nil if rows were skipped
	// Skipped counts rows that were not sent. GET /v1/authorizations has them from its From.
	Skipped *Skipped
}

// Skipped says which rows a stream did not send.
type Skipped struct {
	Count int64  `json:"count"`
	From  string `json:"from"`
}

// Stream yields the rows of the history as they are decided. filter has the parameters of
// GET /v1/authorizations. With the ID of an event it goes on after that event, otherwise it begins
// now. It connects again by itself, without a gap. It ends after the first error: a refusal, three
// failures in a row, or the end of ctx. The key needs the scope history:read.
func (c *Client) Stream(ctx context.Context, filter url.Values, lastEventID string) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		at := lastEventID
		for failures, pause := 0, streamPause; ; pause *= 2 {
			began := at
			after, err := c.follow(ctx, filter, &at, func(e Event) bool { return yield(e, nil) })
			if err == nil {
				return
			}
			if at != began {
				failures, pause = 0, streamPause
			}
			if failures++; after < 0 || failures == attempts {
				yield(Event{}, err)
				return
			}
			select {
			case <-ctx.Done():
				yield(Event{}, ctx.Err())
				return
			case <-time.After(max(after, pause/2+rand.N(pause))):
			}
		}
	}
}

// follow reads one connection of a stream and moves at. It returns nil if yield wants no more. Beside
// an error it returns how long to wait before it is called again, or a negative duration if it must not be.
func (c *Client) follow(
	ctx context.Context, filter url.Values, at *string, yield func(Event) bool,
) (time.Duration, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	silent := time.AfterFunc(silence, cancel)
	defer silent.Stop()
	target := c.config.URL + "/v1/authorizations/stream?" + filter.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return -1, c.hide(err)
	}
	req.Header.Set("Authorization", "Bearer "+c.config.APIKey)
	req.Header.Set("Accept", "text/event-stream")
	if *at != "" {
		req.Header.Set("Last-Event-ID", *at)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return 0, c.hide(fmt.Errorf("writ: %w", err))
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
		if err != nil {
			return 0, c.hide(fmt.Errorf("writ: reading the answer: %w", err))
		}
		return c.refusal(resp, body)
	}
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind != "text/event-stream" {
		return -1, fmt.Errorf("%w: it is no stream of events", ErrAnswer)
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, maxAnswer)
	var m message
	for lines.Scan() {
		silent.Reset(silence)
		if !m.add(lines.Text()) {
			continue
		}
		e, err := m.event()
		if err != nil {
			return -1, err
		}
		if m.id != "" {
			*at = m.id
		}
		if (e.Row != nil || e.Skipped != nil) && !yield(e) {
			return 0, nil
		}
		m = message{}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return -1, fmt.Errorf("%w: an event is longer than %d bytes", ErrAnswer, maxAnswer)
	}
	return 0, errors.New("writ: the stream was cut")
}

// message is a message of server-sent events.
type message struct {
	id, kind string
	data     []string
}

// add reads a line. It reports whether the message is whole.
func (m *message) add(line string) bool {
	name, value, _ := strings.Cut(line, ":")
	value = strings.TrimPrefix(value, " ")
	switch name {
	case "id":
		m.id = value
	case "event":
		m.kind = value
	case "data":
		m.data = append(m.data, value)
	}
	return line == ""
}

// event returns the event that the message is, or the zero Event if the client does not know it.
func (m *message) event() (Event, error) {
	e := Event{ID: m.id}
	data := []byte(strings.Join(m.data, "\n"))
	if len(m.data) == 0 || m.kind != "" && m.kind != "message" && m.kind != "skipped" {
		return Event{}, nil
	}
	if !json.Valid(data) || !bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		return Event{}, fmt.Errorf("%w: the data of an event is no object", ErrAnswer)
	}
	if m.kind != "skipped" {
		e.Row = data
		return e, nil
	}
	if err := json.Unmarshal(data, &e.Skipped); err != nil {
		return Event{}, fmt.Errorf("%w: %w", ErrAnswer, err)
	}
	return e, nil
}
