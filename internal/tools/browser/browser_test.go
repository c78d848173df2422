// Package browser tests the pages of writ in a real Chromium: `make browser`.
// It is a module of its own, so that the binary's modules hold no browser driver.
package browser

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// patience bounds every wait for a process or a page.
const patience = 2 * time.Minute

var (
	serving = regexp.MustCompile(`^writ serves on (\S+); `)
	showing = regexp.MustCompile(`^the console of \S+ is at (\S+)/console$`)
)

// serve starts the binary that $WRIT names and returns its address.
func serve(t *testing.T) string {
	t.Helper()
	return serveDir(t, filepath.Join(t.TempDir(), "data"))
}

// serveDir is serve with a data directory and further flags.
func serveDir(t *testing.T, data string, more ...string) string {
	t.Helper()
	return launch(t, serving, append([]string{"serve", "--addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0", "--data", data}, more...)...)
}

// launch starts the binary and returns the address that it says in a line that matches says.
func launch(t *testing.T, says *regexp.Regexp, args ...string) string {
	t.Helper()
	bin := os.Getenv("WRIT")
	if bin == "" {
		t.Fatal("WRIT is not set: make browser sets it to the binary under test")
	}
	cmd := exec.Command(bin, args...)
	cmd.Stderr = t.Output()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	url := make(chan string, 1)
	ended := make(chan error, 1)
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if m := says.FindStringSubmatch(lines.Text()); m != nil {
				url <- m[1]
			}
		}
		ended <- cmd.Wait()
	}()
	t.Cleanup(func() {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Errorf("stopping writ: %v", err)
		}
		if err := <-ended; err != nil {
			t.Errorf("writ %s = %v", args[0], err)
		}
	})
	select {
	case u := <-url:
		return u
	case <-time.After(patience):
		t.Fatalf("writ %s does not serve after %v", args[0], patience)
	}
	return ""
}

// chromium starts a browser with a new, empty profile. It fails if Chromium is
// not installed. In that case make browser skips these tests and says so.
func chromium(t *testing.T) context.Context {
	t.Helper()
	var flags []chromedp.ExecAllocatorOption
	for _, name := range []string{
		"headless", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run", "no-default-browser-check",
		"disable-background-networking", "disable-component-update", "disable-sync", "disable-dev-shm-usage",
	} {
		flags = append(flags, chromedp.Flag(name, true))
	}
	// Without this cache going back loads the page again, from stored responses.
	flags = append(flags, chromedp.Flag("disable-features", "BackForwardCache"))
	alloc, stop := chromedp.NewExecAllocator(t.Context(), flags...)
	t.Cleanup(stop)
	browser, stop := chromedp.NewContext(alloc)
	t.Cleanup(stop)
	if err := chromedp.Do(browser); err != nil {
		t.Fatalf("starting Chromium: %v", err)
	}
	return browser
}

// call sends one command of the protocol.
func call[P, R any](t *testing.T, tab context.Context, cmd cdp.Command[P, R], params P) {
	t.Helper()
	if _, err := chromedp.Call(tab, cmd, params); err != nil {
		t.Fatal(err)
	}
}

// witness records the forbidden acts of a page, and the answers of 304 to its requests.
type witness struct {
	base string

	mu          sync.Mutex
	complaints  []string
	notModified map[string]int // answers of 304, by path
	urls        map[network.RequestID]string
}

// watch opens a tab whose events w records.
func watch(t *testing.T, browser context.Context, base string) (context.Context, *witness) {
	t.Helper()
	tab, closeTab := chromedp.NewContext(browser)
	t.Cleanup(closeTab)
	tab, giveUp := context.WithTimeout(tab, patience)
	t.Cleanup(giveUp)
	w := &witness{base: base, notModified: make(map[string]int), urls: make(map[network.RequestID]string)}
	if err := chromedp.Listen(tab, w.hear); err != nil {
		t.Fatal(err)
	}
	call(t, tab, network.Enable, network.EnableParams{})
	call(t, tab, log.Enable, cdp.Empty{})
	call(t, tab, runtime.Enable, cdp.Empty{})
	return tab, w
}

func (w *witness) hear(event any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		var said []string
		for _, a := range e.Args {
			said = append(said, string(a.Value)+a.Description)
		}
		w.complain("console.%s: %s", e.Type, strings.Join(said, " "))
	case *runtime.EventExceptionThrown:
		w.complain("exception: %s %s:%d", e.ExceptionDetails.Text, e.ExceptionDetails.URL, e.ExceptionDetails.LineNumber)
	case *log.EventEntryAdded:
		w.complain("log %s: %s %s", e.Entry.Level, e.Entry.Text, e.Entry.URL)
	case *network.EventRequestWillBeSent:
		w.urls[e.RequestID] = e.Request.URL
		if !strings.HasPrefix(e.Request.URL, w.base+"/") && !strings.HasPrefix(e.Request.URL, "data:") {
			w.complain("asks another server: %s", e.Request.URL)
		}
	case *network.EventResponseReceivedExtraInfo:
		path := strings.TrimPrefix(w.urls[e.RequestID], w.base)
		if e.StatusCode == 304 {
			w.notModified[path]++
		}
		if e.StatusCode >= 400 {
			w.complain("%s = %d", path, e.StatusCode)
		}
	case *network.EventLoadingFailed:
		w.complain("%s: %s %s", w.urls[e.RequestID], e.ErrorText, e.BlockedReason)
	}
}

func (w *witness) complain(format string, args ...any) {
	w.complaints = append(w.complaints, fmt.Sprintf(format, args...))
}

// take returns the complaints since the last call.
func (w *witness) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.complaints
	w.complaints = nil
	return all
}

// kept returns how often the server answered 304 for a path.
func (w *witness) kept(path string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.notModified[path]
}
