package browser

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/evanw/esbuild/pkg/api"
)

const root = "../../.."

// conformance is what all clients of sdk/ are held to: see its member about.
type conformance struct {
	APIKey string `json:"api_key"`
	Cases  []struct {
		Name    string
		Answers []scripted
		Want    struct {
			Outcome, Code    string
			Requests, Status int
			Replayed         *bool
		}
	}
	Streams []struct {
		Name    string
		Answers []scripted
		Want    struct {
			Outcome, Code string
			Events        []any
			LastEventIDs  []string `json:"last_event_ids"`
		}
	}
}

// scripted is an answer of the server.
type scripted struct {
	Status  int
	Headers map[string]string
	Body    string
	Cut     bool
	CutBody bool `json:"cut_body"`
	DelayMS int  `json:"delay_ms"`
}

func (a scripted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	select {
	case <-time.After(time.Duration(a.DelayMS) * time.Millisecond):
	case <-r.Context().Done():
	}
	// A browser sends a request again by itself if an old connection turns out to be closed.
	w.Header().Set("Connection", "close")
	if a.Cut {
		panic(http.ErrAbortHandler)
	}
	for k, v := range a.Headers {
		w.Header().Set(k, v)
	}
	if a.CutBody {
		w.Header().Set("Content-Length", "100000")
	}
	w.WriteHeader(a.Status)
	_, _ = io.WriteString(w, a.Body)
	if a.CutBody {
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
}

// received are the requests of one case.
type received struct{ bodies, lastEventIDs []string }

// script answers below /case/n and /stream/n with the answers of the nth case or stream, in order.
type script struct {
	conformance
	page string

	mu       sync.Mutex
	requests map[string]*received
}

func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(r.URL.Path, "/")
	if len(parts) < 4 {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, s.page)
		return
	}
	n, _ := strconv.Atoi(parts[2]) // the page made it
	var answers []scripted
	if parts[1] == "case" {
		answers = s.Cases[n].Answers
	} else {
		answers = s.Streams[n].Answers
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	s.mu.Lock()
	of := s.requests[parts[1]+parts[2]]
	if of == nil {
		of = new(received)
		s.requests[parts[1]+parts[2]] = of
	}
	of.bodies = append(of.bodies, string(body))
	of.lastEventIDs = append(of.lastEventIDs, r.Header.Get("Last-Event-ID"))
	at := len(of.bodies)
	s.mu.Unlock()
	if at > len(answers) {
		panic(http.ErrAbortHandler)
	}
	answers[at-1].ServeHTTP(w, r)
}

// TestSDK runs the cases that all clients share, and the vectors of receipts, with the client for TypeScript in a page.
// It is bundled as a program of its users is, from the package that .ci/sdk has built.
func TestSDK(t *testing.T) {
	entry := root + "/bin/sdk-typescript/used/sdk/typescript/test/browser.mjs" // beside the package and what it reads
	if _, err := os.Stat(entry); err != nil {
		t.Skip("SKIPPED sdk/typescript in a browser: .ci/sdk has not built the package")
	}
	bundle := api.Build(api.BuildOptions{EntryPoints: []string{entry}, Bundle: true, Format: api.FormatIIFE, Platform: api.PlatformBrowser})
	if len(bundle.Errors) > 0 || len(bundle.Warnings) > 0 {
		t.Fatalf("esbuild: %v %v", bundle.Errors, bundle.Warnings)
	}
	data, err := os.ReadFile(root + "/sdk/conformance.json")
	if err != nil {
		t.Fatal(err)
	}
	s := &script{requests: map[string]*received{}}
	if err := json.Unmarshal(data, &s.conformance); err != nil {
		t.Fatal(err)
	}
	s.page = "<!doctype html><title>sdk</title><script>" + strings.ReplaceAll(string(bundle.OutputFiles[0].Contents), "</script", `<\/script`) + "</script>"
	server := httptest.NewServer(s)
	defer server.Close()
	tab := chromium(t)
	run(t, tab, chromedp.Navigate(server.URL))

	type ended struct {
		Outcome, Code, Logged string
		Allowed, Replayed     bool
		Status                int
		Events                []any
	}
	t.Run("cases", func(t *testing.T) {
		all := ask(t, tab, chromedp.Evaluate[[]ended](`cases()`, chromedp.EvalAwaitPromise))
		if len(all) < 120 || len(all) != len(s.Cases) {
			t.Fatalf("%d of %d cases ended", len(all), len(s.Cases))
		}
		for n, c := range s.Cases {
			got, of := all[n], s.requests[fmt.Sprint("case", n)]
			redirected := got.Outcome == "problem" && len(c.Answers) > 0 && c.Answers[0].Status/100 == 3 // of which a page learns nothing
			switch {
			case got.Outcome != c.Want.Outcome || got.Allowed != (c.Want.Outcome == "allow"),
				c.Want.Replayed != nil && got.Allowed && got.Replayed != *c.Want.Replayed,
				got.Outcome == "problem" && !redirected && c.Want.Status != 0 && got.Status != c.Want.Status,
				got.Outcome == "problem" && c.Want.Code != "" && got.Code != c.Want.Code,
				strings.Contains(got.Logged, s.APIKey):
				t.Errorf("%s: %+v, want %+v", c.Name, got, c.Want)
			case len(of.bodies) != c.Want.Requests:
				t.Errorf("%s: %d requests, want %d", c.Name, len(of.bodies), c.Want.Requests)
			}
			for _, body := range of.bodies {
				if body != of.bodies[0] {
					t.Errorf("%s: a repetition differs from the first request: %s, then %s", c.Name, of.bodies[0], body)
				}
			}
		}
	})
	t.Run("streams", func(t *testing.T) {
		all := ask(t, tab, chromedp.Evaluate[[]ended](`streams()`, chromedp.EvalAwaitPromise))
		if len(all) == 0 || len(all) != len(s.Streams) {
			t.Fatalf("%d of %d streams ended", len(all), len(s.Streams))
		}
		for n, c := range s.Streams {
			got, of := all[n], s.requests[fmt.Sprint("stream", n)]
			// A browser may drop what the page has not read of a body that is cut. The page then asks for it again.
			lossy := slices.ContainsFunc(c.Answers, func(a scripted) bool { return a.CutBody })
			if got.Outcome != c.Want.Outcome || got.Outcome == "problem" && got.Code != c.Want.Code || strings.Contains(got.Logged, s.APIKey) ||
				!lossy && len(got.Events)+len(c.Want.Events) > 0 && !reflect.DeepEqual(got.Events, c.Want.Events) {
				t.Errorf("%s: %+v, want %+v", c.Name, got, c.Want)
			}
			if len(of.lastEventIDs) != len(c.Want.LastEventIDs) || !lossy && !slices.Equal(of.lastEventIDs, c.Want.LastEventIDs) {
				t.Errorf("%s: the last ids are %q, want %q", c.Name, of.lastEventIDs, c.Want.LastEventIDs)
			}
		}
	})
	t.Run("receipts", func(t *testing.T) {
		got := ask(t, tab, chromedp.Evaluate[struct {
			Verified, Refused int
			Wrong             []string
		}](`receipts()`, chromedp.EvalAwaitPromise))
		if got.Verified != 22 || got.Refused < 330 || len(got.Wrong) > 0 {
			t.Errorf("%+v", got)
		}
	})
}
