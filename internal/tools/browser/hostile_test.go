package browser

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// markup would run, load or redraw something where a page took it for more than text. turning would reorder or hide
// it.
const (
	markup  = `"'><script>document.title='ran'</script><img class=injected src=x onerror="document.title='ran'"></title><style>*{display:none}`
	turning = "\u202egpj.\u2066\u200f\u0000\x1b[31m\u2028\ufeff\n\U000e0041"
)

// long and many are without a place where a line may break: 64 KiB in a document, and less in each of many.
var (
	long = markup + turning + strings.Repeat("W", 64<<10)
	many = markup + turning + strings.Repeat("W", 4<<10)
)

// linked are members whose texts lead to another page. What the server has under such a text is asked for by
// it, so most stay as they are.
var linked = regexp.MustCompile(`^(id|name|next_cursor|chain|credential|version|type|kind|organization_id|.*_id)$`)

// hostile returns an answer of the API in which every text is another one, as are keys that callers choose. Times
// and what leads to another page are left.
func hostile(v any, path, member, text string) any {
	switch v := v.(type) {
	case string:
		if _, err := time.Parse(time.RFC3339, v); err == nil || stays(path, member) {
			return v
		}
		switch member {
		case "code", "agent_id", "externalId", "action_type":
			return markup + "\u05d0\u05d1" // it is in an address, so the server bounds it
		}
		return text
	case []any:
		for i := range v {
			v[i] = hostile(v[i], path, member, text)
		}
	case map[string]any:
		for k, x := range v {
			v[k] = hostile(x, path, k, text)
		}
		if member == "metadata" || member == "counts" {
			return map[string]any{long: firstOf(v)}
		}
	}
	return v
}

func stays(path, member string) bool {
	switch {
	case member == "agent_id":
		return false
	case member == "name":
		return strings.HasPrefix(path, "/v1/lists") || strings.HasPrefix(path, "/v1/libraries")
	case member == "type":
		return false
	case strings.HasPrefix(path, "/v1/credential"):
		return member != "name"
	}
	return linked.MatchString(member)
}

func firstOf(v map[string]any) any {
	for _, x := range v {
		return x
	}
	return nil
}

// between is a server in front of that at base, whose texts are hostile.
func between(t *testing.T, base string) string {
	t.Helper()
	to, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	spoil := func(text []byte, path string) []byte {
		var v any
		read := json.NewDecoder(bytes.NewReader(text))
		read.UseNumber()
		if read.Decode(&v) != nil {
			return text
		}
		with := long
		if _, list := v.([]any); list || bytes.Contains(text, []byte(`"data":[`)) {
			with = many
		}
		out, err := json.Marshal(hostile(v, path, "", with))
		if err != nil {
			t.Error(err)
		}
		return out
	}
	proxy := &httputil.ReverseProxy{
		FlushInterval: -1,
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(to) },
		ModifyResponse: func(r *http.Response) error {
			path := r.Request.URL.Path
			if path == "/v1/authorizations/stream" {
				from := r.Body
				out, in := io.Pipe()
				go func() {
					for lines := bufio.NewScanner(from); lines.Scan(); {
						line := lines.Text()
						if data, ok := strings.CutPrefix(line, "data: "); ok {
							line = "data: " + string(spoil([]byte(data), path))
						}
						fmt.Fprintln(in, line)
					}
					in.Close()
				}()
				r.Body = struct {
					io.Reader
					io.Closer
				}{out, from}
				return nil
			}
			text, err := io.ReadAll(r.Body)
			if err != nil {
				return err
			}
			if path != "/.well-known/jwks.json" {
				text = spoil(text, path)
			}
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
			r.Header.Set("Content-Length", strconv.Itoa(len(text)))
			return nil
		},
	}
	s := httptest.NewServer(proxy)
	t.Cleanup(s.Close)
	return s.URL
}

// ids are what pages of the same kind differ in.
var ids = regexp.MustCompile(`[0-9a-fA-F]{8}-[0-9a-f-]{27}|/keys/[\w-]{22}|cursor=[^&]*|[a-z_]+_id=[^&]*|credential=[^&]*`)

// TestConsole_HostileTexts fills every text of every answer with markup, with 64 KiB and with characters that turn
// text around, and opens every page that a link or a form leads to. Nothing may run, be wider than the screen, or
// show such a character.
func TestConsole_HostileTexts(t *testing.T) {
	c := openConsole(t)
	c.fill(t, "demo")
	c.base = launch(t, showing, "console", "--url", between(t, c.base), "--addr", "127.0.0.1:0")
	for _, s := range []screen{screens[0], screens[2]} {
		t.Run(s.name, func(t *testing.T) {
			tab, w := watch(t, chromium(t), c.base)
			s.emulate(t, tab)
			c.signIn(t, tab, "demo")
			w.take()
			seen, kinds := map[string]bool{}, map[string]int{}
			for next := []string{"/console"}; len(next) > 0; next = next[1:] {
				path := next[0]
				run(t, tab, chromedp.Navigate(c.base+path), chromedp.WaitReady(chromedp.CSS(`main h1`)))
				shoot(t, tab, fmt.Sprintf("hostile-%s-%02d", s.name, len(kinds)))
				got := ask(t, tab, chromedp.Evaluate[struct {
					Title    string
					Width    int64
					Widest   string
					Injected int
					Turned   string
					To       []string
				}](crawled))
				for _, complaint := range w.take() {
					t.Errorf("%s: %.300s", path, complaint)
				}
				if got.Title == "ran" || got.Injected > 0 {
					t.Errorf("%s: a text became markup", path)
				}
				if got.Width > s.width {
					t.Errorf("%s is %d pixels wide, the screen is %d: %s", path, got.Width, s.width, got.Widest)
				}
				if got.Turned != "" {
					t.Errorf("%s shows a character that turns text around, or none: %q", path, got.Turned)
				}
				for _, to := range got.To {
					kind := ids.ReplaceAllString(to, "*")
					if !strings.HasPrefix(to, "/console") || strings.Contains(to, "code=") || seen[to] || kinds[kind] > 1 {
						continue
					}
					seen[to], kinds[kind] = true, kinds[kind]+1
					next = append(next, to)
				}
			}
			t.Logf("%d pages of %d kinds", len(seen), len(kinds))
			if len(kinds) < 28 {
				t.Errorf("%d kinds of pages were found, want at least 28: %v", len(kinds), kinds)
			}
		})
	}
}

const crawled = `(() => {
  for (const d of document.querySelectorAll('details')) d.open = true;
  const here = (a) => { const u = new URL(a, location); return u.origin === location.origin ? [u.pathname + u.search] : []; };
  const to = [...document.querySelectorAll('a[href]')].flatMap((a) => a.download || a.hash ? [] : here(a.href))
    .concat([...document.querySelectorAll('form[method=get]')].flatMap((f) => here(f.action)));
  const width = document.documentElement.scrollWidth;
  const widest = [...document.querySelectorAll('body *')].filter((e) => e.getBoundingClientRect().right > innerWidth + 1)
    .map((e) => e.tagName + '.' + e.className).slice(0, 5).join(' ');
  const shown = document.title + [...document.querySelectorAll('h1, main, header')].map((e) => e.innerText).join('');
  const turned = shown.match(/.{0,20}[\u202a-\u202e\u2066-\u2069\u200e\u200f\u0000\u001b\u2028\ufeff\u{e0041}].{0,20}/u)?.[0] ?? '';
  return { title: document.title, width, widest, injected: document.querySelectorAll('.injected, main script, main style').length, turned, to };
})()`
