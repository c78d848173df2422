package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/mattn/go-isatty"
)

// progress draws a progress bar on a terminal. Elsewhere it draws nothing.
type progress struct {
	w     io.Writer
	shown bool // whether w is a terminal

	mu   sync.Mutex
	next time.Time // when to draw again
}

func newProgress(w io.Writer) *progress {
	f, ok := w.(*os.File)
	return &progress{w: w, shown: ok && isatty.IsTerminal(f.Fd()) && os.Getenv("TERM") != "dumb"}
}

const (
	barWidth   = 30
	eraseLine  = "\r\x1b[K"
	drawnEvery = 100 * time.Millisecond
)

// show draws the bar, at most ten times a second.
func (p *progress) show(what string, done, total int) {
	if !p.shown {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if now.Before(p.next) {
		return
	}
	p.next = now.Add(drawnEvery)
	if total <= done {
		fmt.Fprintf(p.w, "%s%-5s %d", eraseLine, what, done)
		return
	}
	full := done * barWidth / total
	fmt.Fprintf(p.w, "%s%-5s %s%s %d of %d", eraseLine, what, strings.Repeat("█", full),
		strings.Repeat("░", barWidth-full), done, total)
}

// line shows a text in place of the last one.
func (p *progress) line(text string) {
	if p.shown {
		p.mu.Lock()
		defer p.mu.Unlock()
		fmt.Fprint(p.w, eraseLine, text)
	}
}

func (p *progress) end() {
	if p.shown {
		fmt.Fprint(p.w, eraseLine)
	}
}

// wait shows the text what and how long the program has waited, after a second and then every second. The
// function that it returns ends that.
func (p *progress) wait(what string) (end func()) {
	if !p.shown {
		return func() {}
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		began, tick := time.Now(), time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				p.end()
				return
			case <-tick.C:
				fmt.Fprintf(p.w, "%s%s, %d s", eraseLine, what, time.Since(began)/time.Second)
			}
		}
	}()
	return func() { close(stop); <-stopped }
}
