package browser

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// page is a page. rendered selects an element that its scripts have made once it
// is rendered.
type page struct{ name, path, rendered string }

var pages = []page{
	{"landing", "/", `#copy:not([hidden])`},
	{"viewer", "/openapi", `.swagger-ui .opblock`},
	{"reference", "/v1/docs", `#viewer h1`},
	{"manual", "/docs", `main h1`},
}

// screen is how a page is looked at.
type screen struct {
	name          string
	width, height int64
	phone         bool
	scheme        string
}

var screens = []screen{
	{"desktop", 1280, 800, false, "light"},
	{"desktop-dark", 1280, 800, false, "dark"},
	{"phone", 390, 844, true, "light"},
	{"phone-dark", 390, 844, true, "dark"},
}

// seen is what a reader sees of a page.
type seen struct {
	Width  int64    `json:"width"`  // of the widest thing on it
	Sheets int      `json:"sheets"` // style sheets in force
	Faint  []string `json:"faint"`  // texts that are hard to read
}

// TestPages opens every page, reloads it (which is answered with 304), leaves it and
// comes back. Each time its files must load and nothing may be on the console. No
// request may go elsewhere. Nothing may be wider than the screen. Text must be easy
// to read in light and in dark.
func TestPages(t *testing.T) {
	base, browser := serve(t), chromium(t)
	for _, s := range screens {
		for i, p := range pages {
			t.Run(s.name+"/"+p.name, func(t *testing.T) {
				tab, w := watch(t, browser, base)
				s.emulate(t, tab)
				visit(t, tab, w, s, p, "load", chromedp.Navigate(base+p.path))
				shoot(t, tab, s.name+"-"+p.name)
				visit(t, tab, w, s, p, "reload", chromedp.Reload())
				if w.kept(p.path) == 0 {
					t.Errorf("the reload of %s was not answered with 304: it tests nothing", p.path)
				}
				other := pages[(i+1)%len(pages)]
				visit(t, tab, w, s, other, "next page", chromedp.Navigate(base+other.path))
				visit(t, tab, w, s, p, "back", chromedp.NavigateBack())
				visit(t, tab, w, s, p, "again", chromedp.Navigate(base+p.path))
			})
		}
	}
}

// TestManual looks at pages of the documentation with each kind of content: tables, wide tables, code, pictures, and what
// a search finds or does not.
func TestManual(t *testing.T) {
	base, browser := serve(t), chromium(t)
	for _, s := range screens {
		t.Run(s.name, func(t *testing.T) {
			tab, w := watch(t, browser, base)
			s.emulate(t, tab)
			for path, rendered := range map[string]string{
				"/docs": `main a`, "/docs/policies": `main table`, "/docs/routes": `main table`, "/docs/configuration": `main table`,
				"/docs/recipes": `main pre`, "/docs/console": `main img`, "/docs?q=rate+limits": `main mark`, "/docs?q=qwertzuiop": `[role=status]`,
			} {
				visit(t, tab, w, s, page{path, path, rendered}, "load", chromedp.Navigate(base+path))
				shoot(t, tab, s.name+strings.NewReplacer("/", "-", "?", "-").Replace(path))
				axe(t, tab, path)
			}
		})
	}
}

// TestDocuments opens what the pages link to and a path that is not there.
func TestDocuments(t *testing.T) {
	base, browser := serve(t), chromium(t)
	for path, want := range map[string]string{
		"/health": `"ok":true`, "/.well-known/jwks.json": `"keys"`, "/openapi.json": `"openapi"`,
	} {
		tab, w := watch(t, browser, base)
		for _, to := range []step{chromedp.Navigate(base + path), chromedp.Reload()} {
			run(t, tab, to)
			text := ask(t, tab, chromedp.Evaluate[string](`document.documentElement.innerText`))
			if !strings.Contains(text, want) {
				t.Errorf("%s shows %.100q, want %s", path, text, want)
			}
			for _, c := range w.take() {
				t.Errorf("%s: %s", path, c)
			}
		}
	}
}

// visit takes a step that leads to p and looks at it.
func visit(t *testing.T, tab context.Context, w *witness, s screen, p page, what string, to step) {
	t.Helper()
	run(t, tab, to, chromedp.WaitReady(chromedp.CSS(p.rendered)))
	got := ask(t, tab, chromedp.Evaluate[seen](look))
	if got.Width > s.width {
		t.Errorf("%s of %s: %d pixels wide, the screen is %d", what, p.path, got.Width, s.width)
	}
	if got.Sheets == 0 {
		t.Errorf("%s of %s: no style sheet is in force", what, p.path)
	}
	for _, text := range got.Faint {
		t.Errorf("%s of %s: hard to read: %s", what, p.path, text)
	}
	for _, c := range w.take() {
		t.Errorf("%s of %s: %s", what, p.path, c)
	}
}

// emulate makes the tab such a screen.
func (s screen) emulate(t *testing.T, tab context.Context) {
	t.Helper()
	call(t, tab, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width: s.width, Height: s.height, DeviceScaleFactor: 1, Mobile: s.phone,
	})
	call(t, tab, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: s.scheme}},
	})
}

// step is something that a tab does.
type step = chromedp.Action[chromedp.Void]

func run(t *testing.T, tab context.Context, steps ...step) {
	t.Helper()
	if err := chromedp.Do(tab, steps...); err != nil {
		t.Fatal(err)
	}
}

func ask[T any](t *testing.T, tab context.Context, question chromedp.Action[T]) T {
	t.Helper()
	answer, err := chromedp.Run(tab, question)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// shoot keeps a picture of the page where $SHOTS says so, for people to look at.
func shoot(t *testing.T, tab context.Context, name string) {
	t.Helper()
	dir := os.Getenv("SHOTS")
	if dir == "" {
		return
	}
	png := ask(t, tab, chromedp.CaptureScreenshot())
	if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o600); err != nil {
		t.Fatal(err)
	}
}

// look returns a seen. A text is hard to read when its contrast to the nearest
// opaque background is below 4.5 (WCAG 2.2, 1.4.3).
const look = `(() => {
  const rgba = (c) => { const m = c.match(/[\d.]+/g).map(Number); return m.length > 3 ? m : [...m, 1]; };
  const light = (c) => c.slice(0, 3).map((v) => { v /= 255; return v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4; })
    .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
  const over = (top, under) => [0, 1, 2].map((i) => top[i] * top[3] + under[i] * (1 - top[3])).concat(1);
  const behind = (e) => {
    const layers = [];
    for (let at = e; at; at = at.parentElement) {
      const c = rgba(getComputedStyle(at).backgroundColor);
      layers.push(c);
      if (c[3] === 1) break;
    }
    return layers.reverse().reduce((under, top) => over(top, under), [255, 255, 255, 1]);
  };
  const faint = [];
  for (const e of document.querySelectorAll('body *')) {
    const own = [...e.childNodes].filter((n) => n.nodeType === 3).map((n) => n.data.trim()).join(' ').trim();
    const box = e.getBoundingClientRect(), style = getComputedStyle(e);
    if (!own || !box.width || !box.height || box.top > innerHeight || style.visibility !== 'visible' || e.disabled || e.closest('noscript,svg')) continue;
    const back = behind(e), a = light(over(rgba(style.color), back)), b = light(back);
    const c = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    if (c < 4.5) faint.push(own.slice(0, 40) + ': ' + c.toFixed(1) + ', ' + style.color + ' on ' + back.slice(0, 3) + ' in ' + e.tagName + '.' + e.className);
  }
  const sheets = [...document.styleSheets].filter((s) => s.cssRules.length > 0).length;
  return { width: document.documentElement.scrollWidth, sheets, faint };
})()`

// TestOperations opens an operation in both viewers, in the light and in the dark. Its texts can be read, and the
// reference has its samples.
func TestOperations(t *testing.T) {
	base, browser := serve(t), chromium(t)
	for _, s := range screens[:2] {
		for _, p := range []struct {
			name, path, rendered string
			shows                []string
		}{
			{"viewer", "/openapi#/evaluation/evaluate", `.opblock-body .responses-wrapper`, []string{"Execute"}},
			{
				"reference", "/v1/docs#tag/evaluation/operation/evaluate", `[role=tab][data-rttab]`,
				[]string{"curl", "Python", "TypeScript", "Go"},
			},
		} {
			t.Run(s.name+"/"+p.name, func(t *testing.T) {
				tab, _ := watch(t, browser, base)
				s.emulate(t, tab)
				run(t, tab, chromedp.Navigate(base+p.path), chromedp.WaitReady(chromedp.CSS(p.rendered)))
				shoot(t, tab, s.name+"-operation-"+p.name)
				text := ask(t, tab, chromedp.Evaluate[string](`document.body.innerText`))
				for _, want := range p.shows {
					if !strings.Contains(text, want) {
						t.Errorf("%s does not show %q", p.path, want)
					}
				}
				for _, faint := range ask(t, tab, chromedp.Evaluate[seen](look)).Faint {
					t.Errorf("%s: hard to read: %s", p.path, faint)
				}
			})
		}
	}
}
