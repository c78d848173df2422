// Command load drives one HTTP endpoint as hard as a fixed number of
// connections allow and reports requests per second and latency percentiles.
//
// The arrival model is closed: each connection sends its next request when the
// last one is answered, so latencies are those at saturation and a slow server
// is asked less. Every request carries an intent id of its own, so nothing is
// answered from an earlier decision.
//
//	load -url http://127.0.0.1:3820/v1/policy/evaluate -operator TOKEN -org bench -conns 64 -duration 10s
//	load -url http://127.0.0.1:3830/ -conns 64 -duration 10s
package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"flag"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"
)

func main() {
	var o options
	flag.StringVar(&o.url, "url", "http://127.0.0.1:3820/v1/policy/evaluate", "endpoint to drive")
	flag.StringVar(&o.operator, "operator", "", "operator token; with it the reference policy and rules are registered and an API key is minted first")
	flag.StringVar(&o.org, "org", "bench", "organization of the operator token")
	flag.IntVar(&o.rules, "rules", 0, "active rules to register with the policy")
	flag.IntVar(&o.conns, "conns", 64, "connections")
	flag.DurationVar(&o.duration, "duration", 10*time.Second, "how long to measure")
	flag.DurationVar(&o.warmup, "warmup", 2*time.Second, "how long to run before measuring")
	flag.StringVar(&o.label, "label", "", "name of the run in the output")
	flag.Parse()
	if err := run(context.Background(), o); err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

type options struct {
	url, operator, org, label string
	rules, conns              int
	duration, warmup          time.Duration
}

func run(ctx context.Context, o options) error {
	u, err := url.Parse(o.url)
	if err != nil {
		return err
	}
	var key string
	if o.operator != "" {
		if key, err = setup(ctx, u, o); err != nil {
			return fmt.Errorf("setting up: %w", err)
		}
	}
	body, err := evaluateBody()
	if err != nil {
		return err
	}
	if o.warmup > 0 {
		if _, err := drive(ctx, u, key, body, o.conns, o.warmup); err != nil {
			return err
		}
	}
	res, err := drive(ctx, u, key, body, o.conns, o.duration)
	if err != nil {
		return err
	}
	res.print(o)
	return nil
}

// result is what a run measured.
type result struct {
	latencies []time.Duration
	elapsed   time.Duration
	bytes     int // of all bodies
}

func (r *result) print(o options) {
	slices.Sort(r.latencies)
	at := func(q float64) time.Duration { return r.latencies[int(q*float64(len(r.latencies)-1))] }
	fmt.Printf("%-24s conns=%d closed requests=%d requests/s=%.0f p50=%v p90=%v p99=%v p99.9=%v max=%v response=%dB\n",
		o.label, o.conns, len(r.latencies), float64(len(r.latencies))/r.elapsed.Seconds(),
		at(.5), at(.9), at(.99), at(.999), at(1), r.bytes/len(r.latencies))
}

// drive keeps every connection busy for d.
func drive(ctx context.Context, u *url.URL, key string, body []byte, conns int, d time.Duration) (*result, error) {
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		total result
		fail  error
	)
	start := time.Now()
	for n := range conns {
		wg.Go(func() {
			r, err := newConn(u, key, body, n).loop(ctx, start.Add(d))
			mu.Lock()
			defer mu.Unlock()
			total.latencies = append(total.latencies, r.latencies...)
			total.bytes += r.bytes
			fail = cmp.Or(fail, err)
		})
	}
	wg.Wait()
	total.elapsed = time.Since(start)
	if fail == nil && len(total.latencies) == 0 {
		fail = fmt.Errorf("no request was answered")
	}
	return &total, fail
}

// conn is one connection and its request, whose intent id is patched in place.
type conn struct {
	addr    string
	request []byte
	id      []byte // within request; nil when it carries no intent
	counter uint64
	read    *bufio.Reader
}

func newConn(u *url.URL, key string, body []byte, n int) *conn {
	c := &conn{addr: u.Host}
	var b bytes.Buffer
	fmt.Fprintf(&b, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n", u.RequestURI(), u.Host)
	if key != "" {
		fmt.Fprintf(&b, "Authorization: Bearer %s\r\n", key)
	}
	fmt.Fprintf(&b, "Content-Length: %d\r\n\r\n%s", len(body), body)
	c.request = b.Bytes()
	if i := bytes.Index(c.request, []byte(intentIDPlaceholder)); i >= 0 {
		c.id = c.request[i : i+len(intentIDPlaceholder)]
	}
	// Intent ids are unique across connections and runs: time, connection, counter.
	c.counter = uint64(time.Now().UnixNano())<<16 ^ uint64(n)<<48
	return c
}

// loop sends requests until the deadline and returns what was answered.
func (c *conn) loop(ctx context.Context, deadline time.Time) (result, error) {
	var r result
	nc, err := (&net.Dialer{}).DialContext(ctx, "tcp", c.addr)
	if err != nil {
		return r, err
	}
	defer func() { _ = nc.Close() }() // everything that matters has been read
	c.read = bufio.NewReaderSize(nc, 16<<10)
	r.latencies = make([]time.Duration, 0, 1<<16)
	for sent := time.Now(); sent.Before(deadline); {
		c.nextIntent()
		if _, err := nc.Write(c.request); err != nil {
			return r, err
		}
		size, err := c.response()
		if err != nil {
			return r, err
		}
		r.bytes += size
		now := time.Now()
		r.latencies = append(r.latencies, now.Sub(sent))
		sent = now
	}
	return r, nil
}

// nextIntent patches a fresh id into the request's body.
func (c *conn) nextIntent() {
	if c.id == nil {
		return
	}
	c.counter++
	const hex = "0123456789abcdef"
	for i, shift := len(c.id)-1, 0; i >= 0 && shift < 64; i-- {
		if c.id[i] == '-' || i == 14 || i == 19 { // keep version and variant
			continue
		}
		c.id[i] = hex[c.counter>>shift&15]
		shift += 4
	}
}

// response reads one response and returns the size of its body. Anything but
// a 200 ends the run: a refused request is no throughput.
func (c *conn) response() (int, error) {
	status, err := c.read.ReadSlice('\n')
	if err != nil {
		return 0, err
	}
	ok := bytes.HasPrefix(status, []byte("HTTP/1.1 200"))
	line := string(bytes.TrimSpace(status))
	size := -1
	for {
		header, err := c.read.ReadSlice('\n')
		if err != nil {
			return 0, err
		}
		if len(header) <= 2 {
			break
		}
		if name := []byte("Content-Length: "); bytes.HasPrefix(header, name) {
			if size, err = strconv.Atoi(string(bytes.TrimSpace(header[len(name):]))); err != nil {
				return 0, err
			}
		}
	}
	if size < 0 {
		return 0, fmt.Errorf("response without Content-Length: %s", line)
	}
	if !ok {
		body, _ := c.read.Peek(min(size, 2048)) // only to explain the failure
		return 0, fmt.Errorf("%s: %s", line, body)
	}
	_, err = c.read.Discard(size)
	return size, err
}
