package bench

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
)

var streams struct {
	writ     string
	rounds   int
	conns    int
	rate     float64
	viewers  int
	stalled  int
	duration time.Duration
}

func init() {
	flag.StringVar(&streams.writ, "streams", "", "binary of writ: measure it beside viewers of its history")
	flag.IntVar(&streams.rounds, "stream-rounds", 5, "rounds that are measured")
	flag.IntVar(&streams.conns, "stream-conns", 64, "connections that decide")
	flag.Float64Var(&streams.rate, "stream-load", 2000, "decisions a second in the open loop")
	flag.IntVar(&streams.viewers, "viewers", 50, "streams that are open")
	flag.IntVar(&streams.stalled, "stalled", 10, "streams among them that nobody reads")
	flag.DurationVar(&streams.duration, "stream-duration", 5*time.Second, "how long a run is measured")
}

// TestStreams measures decisions of two servers in turn. The history of the second one has viewers, some of
// which do not read. The percentiles of both must differ by no more than the noise, which is that of the
// first server against itself. It also measures how long after its decision a row reaches a viewer.
func TestStreams(t *testing.T) {
	if streams.writ == "" {
		t.Skip("bench/run.sh streams measures")
	}
	b := &Bench{
		Header: Header{Rounds: streams.rounds}, Loads: []Load{{}, {Rate: streams.rate}}, Conns: streams.conns, OpenConns: streams.conns,
		Duration: streams.duration, Warmup: time.Second, Patience: time.Second, Raw: io.Discard, Say: say,
	}
	for _, name := range []string{"alone", "viewers"} {
		s, err := Program{Name: name, Binary: streams.writ, Dir: t.TempDir(), Args: []string{"--queue-deadline", "2s"}}.
			Start(t.Context(), Work{Organization: "bench", Organizations: 1, Policies: 1})
		must(t, err)
		t.Cleanup(func() {
			if err := s.Stop(); err != nil {
				t.Error(err)
			}
		})
		b.Subjects = append(b.Subjects, s)
	}
	seen := watchStreams(t, b.Subjects[1])
	d, err := b.Run(t.Context())
	must(t, err)
	must(t, d.Summarize().Print(t.Output()))
	took, skipped := seen()
	if len(took) == 0 {
		t.Fatal("no row has reached a viewer")
	}
	say("%d viewers, %d of them stalled: %d rows, %d more were skipped; decision to event: %s",
		streams.viewers, streams.stalled, len(took), skipped, percentiles(took))
}

// watchStreams opens the streams. seen closes them. It returns how long each row took, and how many the
// streams have skipped.
func watchStreams(t *testing.T, s *Subject) (seen func() (took []time.Duration, skipped int)) {
	t.Helper()
	bearer, err := OperatorTokens(filepath.Join(s.data, "operator-secret"))
	must(t, err)
	token, err := bearer("bench")
	must(t, err)
	ctx, end := context.WithCancel(t.Context())
	t.Cleanup(end)
	u := *s.target.URL
	u.Path = "/v1/authorizations/stream"
	var (
		mu      sync.Mutex
		all     []time.Duration
		left    int
		readers sync.WaitGroup
	)
	for i := range streams.viewers {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
		must(t, err)
		req.Header.Set("Authorization", "Bearer "+token)
		res, err := http.DefaultClient.Do(req)
		must(t, err)
		t.Cleanup(func() { _ = res.Body.Close() })
		if res.StatusCode != http.StatusOK {
			t.Fatalf("stream %d = %s", i, res.Status)
		}
		if i < streams.stalled {
			continue
		}
		readers.Go(func() {
			took, skipped, err := readStream(res.Body)
			if ctx.Err() == nil {
				t.Errorf("stream %d ended: %v", i, err)
			}
			mu.Lock()
			defer mu.Unlock()
			all, left = append(all, took...), left+skipped
		})
	}
	return func() ([]time.Duration, int) {
		end()
		readers.Wait()
		return all, left
	}
}

// readStream reads events until the stream ends.
func readStream(body io.Reader) (took []time.Duration, skipped int, err error) {
	for r := bufio.NewReader(body); ; {
		line, err := r.ReadString('\n')
		if err != nil {
			return took, skipped, err
		}
		data, ok := strings.CutPrefix(line, "data: ")
		if !ok {
			continue
		}
		now := time.Now()
		var event struct {
			DecidedAt time.Time `json:"decided_at"`
			Count     int       `json:"count"`
		}
		if err := json.Unmarshal([]byte(data), &event); err != nil {
			return took, skipped, errors.Join(errors.New("reading an event"), err)
		}
		if skipped += event.Count; event.Count == 0 {
			took = append(took, now.Sub(event.DecidedAt))
		}
	}
}
