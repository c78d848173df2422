package operator

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// jwksRefresh is the time between two regular reads of the key set.
	jwksRefresh = 5 * time.Minute
	// jwksPause is the least time between two reads that unknown key ids cause. Without this pause
	// anybody could cause many reads with invented key ids.
	jwksPause = 10 * time.Second
	// jwksTimeout bounds one read. jwksWait bounds how long a request waits for a read.
	jwksTimeout = 10 * time.Second
	jwksWait    = 2 * time.Second
	jwksMax     = 1 << 20
)

// keys holds the keys that may sign operator tokens. They come from a file or a URL, which run
// reads again regularly. If a read fails, the current keys stay.
type keys struct {
	alg  string
	read func(context.Context) ([]byte, error)
	now  func() time.Time
	log  *slog.Logger
	set  atomic.Pointer[keySet]
	kick chan struct{}

	mu sync.Mutex
	// asked is the time when a request last asked for a read. pending is closed when that read
	// ends. It is nil if no read is pending.
	asked   time.Time
	pending chan struct{}
}

// newKeys reads source for the first time. source is a path or an http(s) URL. A file that cannot
// be read is an error. A URL that cannot be read is no error, because the URL's server may start
// later than this process.
func newKeys(ctx context.Context, cfg Config, now func() time.Time, log *slog.Logger) (*keys, error) {
	source, client := cfg.JWKS, cfg.Client
	if client == nil {
		client = &http.Client{Timeout: jwksTimeout}
	}
	j := &keys{alg: cfg.Alg, now: now, log: log, kick: make(chan struct{}, 1)}
	j.set.Store(&keySet{})
	remote := strings.HasPrefix(source, "https://") || strings.HasPrefix(source, "http://")
	if remote {
		j.read = func(ctx context.Context) ([]byte, error) { return readURL(ctx, client, source) }
	} else {
		j.read = func(context.Context) ([]byte, error) { return os.ReadFile(source) }
	}
	if err := j.refresh(ctx); err != nil {
		if !remote {
			return nil, fmt.Errorf("reading the operator keys: %w", err)
		}
		log.Warn("the operator keys cannot be read yet; operator tokens are refused until they can", "error", err)
	}
	return j, nil
}

func (j *keys) run(ctx context.Context) {
	tick := time.NewTicker(jwksRefresh)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-j.kick:
		}
		if err := j.refresh(ctx); err != nil && ctx.Err() == nil {
			j.log.Warn("reading the operator keys failed; the earlier ones stay in force", "error", err)
		}
		j.mu.Lock()
		if j.pending != nil {
			close(j.pending)
			j.pending = nil
		}
		j.mu.Unlock()
	}
}

func (j *keys) refresh(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, jwksTimeout)
	defer cancel()
	data, err := j.read(ctx)
	if err != nil {
		return err
	}
	next, err := parseJWKS(data, j.alg)
	if err != nil {
		return err
	}
	last := j.set.Load()
	next.source = sha256.Sum256(data)
	if next.source == last.source {
		return nil
	}
	next.gen = last.gen + 1
	j.set.Store(next)
	return nil
}

// generation changes whenever the keys change, which invalidates every cached operator token. A
// read that finds the same keys does not change it: anybody can cause a read with an invented key
// id.
func (j *keys) generation() uint64 { return j.set.Load().gen }

// key returns the key with the given id. For an unknown id it requests a read of the keys, at most once in jwksPause.
// It waits for that read for at most jwksWait.
func (j *keys) key(ctx context.Context, kid string) (any, error) {
	if k := j.set.Load().key(kid); k != nil {
		return k, nil
	}
	fresh := j.ask()
	if fresh == nil {
		return nil, errors.New("unknown key id")
	}
	wait := time.NewTimer(jwksWait)
	defer wait.Stop()
	select {
	case <-fresh:
	case <-wait.C:
	case <-ctx.Done():
	}
	if k := j.set.Load().key(kid); k != nil {
		return k, nil
	}
	return nil, errors.New("unknown key id")
}

// ask requests a read of the keys. It returns a channel that is closed after the read. It returns
// nil if the last request was less than jwksPause ago.
func (j *keys) ask() <-chan struct{} {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.pending != nil {
		return j.pending
	}
	now := j.now()
	if !j.asked.IsZero() && now.Sub(j.asked) < jwksPause {
		return nil
	}
	j.asked = now
	j.pending = make(chan struct{})
	select {
	case j.kick <- struct{}{}:
	default: // another request for a read is already waiting
	}
	return j.pending
}

func readURL(ctx context.Context, client *http.Client, url string) (_ []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	res, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, res.Body.Close()) }()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("fetching %s: status %s", url, res.Status)
	}
	data, err := io.ReadAll(io.LimitReader(res.Body, jwksMax+1))
	if err != nil {
		return nil, fmt.Errorf("fetching %s: %w", url, err)
	}
	if len(data) > jwksMax {
		return nil, fmt.Errorf("fetching %s: more than %d bytes", url, jwksMax)
	}
	return data, nil
}
