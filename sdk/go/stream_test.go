package writ

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"strings"
	"testing"
)

// streams are the cases of streams that all clients share.
type streams struct {
	APIKey  string `json:"api_key"`
	Streams []struct {
		Name    string
		Answers []scripted
		Want    struct {
			Events []struct {
				ID      string
				Row     map[string]any
				Skipped *Skipped
			}
			LastEventIDs  []string `json:"last_event_ids"`
			Outcome, Code string
		}
	}
}

func TestConformance_Streams(t *testing.T) {
	text, err := os.ReadFile("../conformance.json")
	if err != nil {
		t.Fatal(err)
	}
	var all streams
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	if len(all.Streams) < 14 {
		t.Errorf("%d cases, want all", len(all.Streams))
	}
	for _, c := range all.Streams {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			var resumed []string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				resumed = append(resumed, r.Header.Get("Last-Event-ID"))
				if n := len(resumed); n <= len(c.Answers) {
					c.Answers[n-1].ServeHTTP(w, r)
				}
			}))
			defer server.Close()
			client, err := New(Config{URL: server.URL, APIKey: all.APIKey})
			if err != nil {
				t.Fatal(err)
			}
			var got []Event
			for e, failed := range client.Stream(context.Background(), nil, "") {
				if err = failed; err == nil {
					got = append(got, e)
				}
			}
			server.Close() // its handlers have returned
			if !reflect.DeepEqual(resumed, c.Want.LastEventIDs) {
				t.Errorf("Last-Event-ID of the requests = %q, want %q", resumed, c.Want.LastEventIDs)
			}
			if len(got) != len(c.Want.Events) {
				t.Fatalf("%d events, want %d", len(got), len(c.Want.Events))
			}
			for i, want := range c.Want.Events {
				var row map[string]any
				if got[i].Row != nil {
					if err := json.Unmarshal(got[i].Row, &row); err != nil {
						t.Fatal(err)
					}
				}
				if got[i].ID != want.ID || !reflect.DeepEqual(row, want.Row) || !reflect.DeepEqual(got[i].Skipped, want.Skipped) {
					t.Errorf("event %d = %+v, want %+v", i, got[i], want)
				}
			}
			var p *Problem
			if outcome := outcomeOf(err); outcome != c.Want.Outcome || errors.As(err, &p) && p.Code != c.Want.Code {
				t.Errorf("it ended with %s (%v), want %s %s", outcome, err, c.Want.Outcome, c.Want.Code)
			}
			if err != nil && strings.Contains(err.Error(), all.APIKey) {
				t.Errorf("the API key is in the error %q", err)
			}
		})
	}
}
