package gateway

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestSessions holds which requests share a session, and that one which does not open refuses the call.
func TestSessions(t *testing.T) {
	var closed []string
	n, broken := 0, errors.New("broken")
	s := sessions{
		open: func(context.Context) (string, error) {
			n++
			if n == 3 {
				return "", broken
			}
			return strconv.Itoa(n), nil
		},
		close: func(_ context.Context, id string) error { closed = append(closed, id); return nil },
	}
	request := new(mcp.ClientSession) // has no id, as a request without a connection
	for _, step := range []struct {
		renew time.Duration
		want  string
		err   error
	}{{0, "1", nil}, {0, "1", nil}, {time.Hour, "1", nil}, {1, "2", nil}, {1, "", broken}, {0, "2", nil}} {
		s.renew = step.renew
		if got, err := s.of(context.Background(), request); got != step.want || !errors.Is(err, step.err) {
			t.Errorf("renewed after %v: session %q, %v, want %q, %v", step.renew, got, err, step.want, step.err)
		}
	}
	if err := s.end(); err != nil || !slices.Equal(closed, []string{"2"}) {
		t.Errorf("at the end %q are closed: %v", closed, err)
	}
}
