package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"reflect"
	"runtime/pprof"
	"strings"
	"sync"
	"time"

	"github.com/alecthomas/kong"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/prometheus/common/expfmt"
)

const bundlePath = "/debug/bundle"

// profileTime is how long a bundle's profile of the processor takes.
const profileTime = 5 * time.Second

// inspect returns the admin address's answers about this process.
func (n *node) inspect(c *serveCmd) map[string]func(context.Context, io.Writer) error {
	return map[string]func(context.Context, io.Writer) error{
		"/doctor": func(ctx context.Context, w io.Writer) error {
			return json.MarshalWrite(w, n.examine(ctx, c), json.Deterministic(true))
		},
		bundlePath: func(ctx context.Context, w io.Writer) error { return n.bundle(ctx, c, w) },
	}
}

// bundle writes a tar archive of what helps to understand this process. There are no secrets in it: see redact.
func (n *node) bundle(ctx context.Context, c *serveCmd, w io.Writer) error {
	packed := gzip.NewWriter(w)
	archive := tar.NewWriter(packed)
	b := &bundler{archive: archive, redact: n.redact(c)}
	b.text("version.txt", func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%s\nbundle of %s\n", readBuilt(), time.Now().UTC().Format(time.RFC3339))
		return err
	})
	b.text("doctor.json", func(w io.Writer) error {
		return json.MarshalWrite(w, n.examine(ctx, c), json.Deterministic(true), jsontext.Multiline(true))
	})
	b.text("settings.json", func(w io.Writer) error {
		if n.reloader == nil {
			return nil
		}
		return json.MarshalWrite(w, n.reloader.shown(), json.Deterministic(true), jsontext.Multiline(true))
	})
	b.text("log.txt", func(w io.Writer) error {
		_, err := w.Write(n.lines.text())
		return err
	})
	b.text("metrics.txt", func(w io.Writer) error {
		families, err := n.registry.Gather()
		for _, f := range families {
			if _, werr := expfmt.MetricFamilyToText(w, f); err == nil {
				err = werr
			}
		}
		return err
	})
	b.text("goroutines.txt", func(w io.Writer) error { return pprof.Lookup("goroutine").WriteTo(w, 1) })
	b.file("heap.pprof", func(w io.Writer) error { return pprof.Lookup("heap").WriteTo(w, 0) })
	b.file("cpu.pprof", func(w io.Writer) error {
		if err := pprof.StartCPUProfile(w); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(profileTime):
			return nil
		}
	})
	return errors.Join(b.err, archive.Close(), packed.Close())
}

// bundler writes the files of a bundle. err is its first error.
type bundler struct {
	archive *tar.Writer
	redact  func(text string) string
	err     error
}

// text adds a file of text, without secrets.
func (b *bundler) text(name string, write func(io.Writer) error) {
	var text bytes.Buffer
	if err := write(&text); err != nil {
		fmt.Fprintf(&text, "\n%v\n", err) // the other files are of use without the rest of this one
	}
	b.add(name, []byte(b.redact(text.String())))
}

// file adds a file that can have no secrets.
func (b *bundler) file(name string, write func(io.Writer) error) {
	var data bytes.Buffer
	if err := write(&data); err != nil {
		b.text(name+".txt", func(io.Writer) error { return err })
		return
	}
	b.add(name, data.Bytes())
}

func (b *bundler) add(name string, data []byte) {
	if b.err != nil {
		return
	}
	b.err = b.archive.WriteHeader(&tar.Header{Name: "writ-bundle/" + name, Mode: 0o600, Size: int64(len(data)),
		ModTime: time.Now().UTC()})
	if b.err == nil {
		_, b.err = b.archive.Write(data)
	}
}

// redact returns a function that removes secrets from a text: what looks like one, and the values of this process.
func (n *node) redact(c *serveCmd) func(text string) string {
	var known []string
	hide := func(secret string) {
		const least = 6 // a shorter one would be found in harmless words
		if secret = strings.TrimSpace(secret); len(secret) >= least {
			known = append(known, secret, "[redacted:setting]")
		}
	}
	if n.reloader != nil {
		n.reloader.hidden(hide)
	}
	for _, name := range []string{
		cmp.Or(c.SigningKey, c.Data.SigningKey()), cmp.Or(c.OperatorSecret, c.Data.OperatorSecret()),
		cmp.Or(c.ScrubKey, c.Data.ScrubKey()), c.ExtAuthz.APIKeyFile,
	} {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // the doctor says so
		}
		for line := range strings.Lines(string(text)) {
			if !strings.HasPrefix(line, "-----") {
				hide(line)
			}
		}
	}
	values := strings.NewReplacer(known...)
	return func(text string) string {
		var b strings.Builder
		for line := range strings.Lines(values.Replace(text)) {
			body := strings.TrimRight(line, "\n")
			b.WriteString(n.scrub.Text(body))
			b.WriteString(line[len(body):])
		}
		return b.String()
	}
}

// shown returns the settings in force by their names. Of a text that can have a secret it has only whether it is set.
func (r *reloader) shown() map[string]any {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make(map[string]any)
	for _, f := range r.flags {
		all[f.Name] = shownSetting(f, r.values[f.Name])
	}
	return all
}

// hidden calls hide with each value that shown does not have.
func (r *reloader) hidden(hide func(string)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, f := range r.flags {
		value := reflect.ValueOf(r.values[f.Name])
		if shownSetting(f, r.values[f.Name]) == fmt.Sprint(value) || value.IsZero() {
			continue
		}
		text := fmt.Sprint(value)
		hide(text)
		if u, err := url.Parse(text); err == nil && u.Host != "" {
			hide(u.User.String())
			if secret, ok := u.User.Password(); ok {
				hide(secret)
			}
			hide(u.RawQuery)
			hide(strings.TrimPrefix(u.Path, "/"))
		}
	}
}

// plainSettings are texts that have no secret.
var plainSettings = map[string]bool{
	"addr": true, "admin-addr": true, "replica": true, "mongodb-database": true, "rate-limit-credential": true,
	"rate-limit-evaluate": true, "rate-limit-changes": true, "rate-limit-address": true, "trusted-proxies": true,
	"webhook-allow": true,
}

// shownSetting returns what may be shown of a setting: numbers, words of a list, paths, the host of a URL, and
// otherwise whether it is set.
func shownSetting(f *kong.Flag, value any) any {
	v := reflect.ValueOf(value)
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return nil
		}
		return shownSetting(f, v.Elem().Interface())
	}
	text := fmt.Sprint(value)
	switch k := v.Kind(); {
	case k == reflect.Bool:
		return value
	case k >= reflect.Int && k <= reflect.Float64, f.Enum != "", plainSettings[f.Name], text == f.Default:
		return text
	case v.IsZero():
		return ""
	case f.PlaceHolder == "URL":
		if u, err := url.Parse(text); err == nil && u.Host != "" {
			if at := u.Scheme + "://" + u.Host; strings.TrimSuffix(text, "/") != at {
				return at + "/…"
			}
			return text
		}
	case f.PlaceHolder == "FILE", f.PlaceHolder == "DIR", f.Name == "data":
		return text
	}
	return "[set]"
}

// lastLines keeps the last lines of the log.
type lastLines struct {
	mu    sync.Mutex
	lines []string
	next  int // where the next line goes, once there are keptLines
}

const (
	keptLines = 1000
	keptLine  = 4 << 10 // the bytes of a line that are kept
)

// Write keeps a line.
func (l *lastLines) Write(line []byte) (int, error) {
	text := string(line[:min(len(line), keptLine)])
	if len(line) > keptLine {
		text += "…\n"
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.lines) < keptLines {
		l.lines = append(l.lines, text)
		return len(line), nil
	}
	l.lines[l.next] = text
	l.next = (l.next + 1) % keptLines
	return len(line), nil
}

// text returns the lines, the oldest first.
func (l *lastLines) text() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return []byte(strings.Join(l.lines[l.next:], "") + strings.Join(l.lines[:l.next], ""))
}
