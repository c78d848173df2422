package ledger

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"writ.example/writ/engine"
	"writ.example/writ/storage"
)

// timed is a store whose commits take some time. It records the start and the number of rows of
// each commit.
type timed struct {
	*fake
	takes   time.Duration
	began   time.Time
	commits []string
}

func (s *timed) Append(ctx context.Context, batch storage.Batch, seal storage.Seal) (storage.Batch, error) {
	s.commits = append(s.commits, fmt.Sprint(len(batch.Records), " at ", time.Since(s.began)))
	time.Sleep(s.takes)
	return s.fake.Append(ctx, batch, seal)
}

// TestCommitter_RestsAfterACommitOfSeveral checks the pause after a commit of several callers. The
// pause is as long as the commit. Callers that arrive during the commit or the pause share the next
// commit. After the commit of a single caller there is no pause, and none while a full batch waits. A least rest makes a shorter pause longer.
func TestCommitter_RestsAfterACommitOfSeveral(t *testing.T) {
	for _, tt := range []struct {
		name     string
		takes    time.Duration
		least    time.Duration // the least rest
		arrivals []time.Duration
		want     []string
	}{
		{"alone", 400 * time.Microsecond, 0, []time.Duration{0, 500 * time.Microsecond, time.Millisecond},
			[]string{"1 at 0s", "1 at 500µs", "1 at 1ms"}},
		{"several", 400 * time.Microsecond, 0, []time.Duration{
			0, 100 * time.Microsecond, 200 * time.Microsecond, 900 * time.Microsecond, 1100 * time.Microsecond, 1300 * time.Microsecond,
		}, []string{"1 at 0s", "2 at 400µs", "2 at 1.2ms", "1 at 2ms"}},
		{"a slow store", 20 * time.Millisecond, 0, []time.Duration{
			0, time.Millisecond, 2 * time.Millisecond, 40200 * time.Microsecond, 40800 * time.Microsecond,
		}, []string{"1 at 0s", "2 at 20ms", "2 at 41ms"}},
		{"a least rest", 50 * time.Microsecond, 500 * time.Microsecond, []time.Duration{
			0, 10 * time.Microsecond, 20 * time.Microsecond, 200 * time.Microsecond, 400 * time.Microsecond, 900 * time.Microsecond,
		}, []string{"1 at 0s", "2 at 50µs", "2 at 600µs", "1 at 1.15ms"}},
		{"a full batch waits", 400 * time.Microsecond, 0,
			append([]time.Duration{0}, slices.Repeat([]time.Duration{100 * time.Microsecond}, 2*maxCommit+1)...),
			[]string{"1 at 0s", fmt.Sprint(maxCommit, " at 400µs"), fmt.Sprint(maxCommit, " at 800µs"), "1 at 1.6ms"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &timed{fake: newFake(), takes: tt.takes, began: time.Now()}
				l := open(t, store, func(c *Config) { c.LeastRest = tt.least })
				for n, at := range tt.arrivals {
					go func() {
						time.Sleep(at)
						if _, err := decide(t.Context(), l, "acme", entry(intent(n), engine.Allow)); err != nil {
							t.Errorf("decide = %v", err)
						}
					}()
				}
				time.Sleep(time.Second)
				synctest.Wait()
				if !slices.Equal(store.commits, tt.want) {
					t.Errorf("commits of %q, want %q", store.commits, tt.want)
				}
			})
		})
	}
}
