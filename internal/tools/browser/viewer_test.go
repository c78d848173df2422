package browser

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestViewer_ShowsOperationsFirst checks that a reader of /openapi sees operations without
// scrolling, and finds the text about all of them below.
func TestViewer_ShowsOperationsFirst(t *testing.T) {
	base, browser := serve(t), chromium(t)
	for _, s := range screens {
		t.Run(s.name, func(t *testing.T) {
			tab, _ := watch(t, browser, base)
			s.emulate(t, tab)
			run(t, tab, chromedp.Navigate(base+"/openapi"), chromedp.WaitReady(chromedp.CSS(`.swagger-ui .opblock`)))
			shoot(t, tab, s.name+"-operations")
			got := ask(t, tab, chromedp.Evaluate[struct{ Operation, Last, Prose, Screen float64 }](`(() => {
  const all = [...document.querySelectorAll('.opblock')], top = (e) => e.getBoundingClientRect().top + scrollY;
  const prose = [...document.querySelectorAll('.swagger-ui p')].find((p) => p.innerText.startsWith('writ governs'));
  return { operation: top(all[0]), last: top(all.at(-1)), prose: prose ? top(prose) : -1, screen: innerHeight };
})()`))
			if got.Operation > got.Screen || got.Prose < got.Last {
				t.Errorf("the first operation is at %v of a screen of %v, the last at %v, the text at %v: want operations on the first screen, the text below them",
					got.Operation, got.Screen, got.Last, got.Prose)
			}
		})
	}
}

// TestViewer_AuthorizeOpensOnTheBearerField checks that a credential can be typed as soon as
// Authorize is clicked.
func TestViewer_AuthorizeOpensOnTheBearerField(t *testing.T) {
	base, browser := serve(t), chromium(t)
	for _, s := range screens {
		t.Run(s.name, func(t *testing.T) {
			tab, _ := watch(t, browser, base)
			s.emulate(t, tab)
			run(t, tab, chromedp.Navigate(base+"/openapi"), chromedp.WaitReady(chromedp.CSS(`.swagger-ui .opblock`)),
				chromedp.Click(chromedp.CSS(`.swagger-ui .btn.authorize`)), chromedp.WaitReady(chromedp.CSS(`#auth-bearer-value`)))
			shoot(t, tab, s.name+"-authorize")
			got := ask(t, tab, chromedp.Evaluate[struct {
				Focus          string
				Top, End, High float64
				First          string
			}](`(() => {
  const box = document.querySelector('#auth-bearer-value').getBoundingClientRect();
  return { focus: document.activeElement.id, top: box.top, end: box.bottom, high: innerHeight,
    first: document.querySelector('.auth-container h4').innerText };
})()`))
			if got.Focus != "auth-bearer-value" || got.Top < 0 || got.End > got.High || !strings.HasPrefix(got.First, "bearer") {
				t.Errorf("Authorize opens on %q, the bearer field is at %v to %v of %v, first is %q: want the bearer field, first and in sight",
					got.Focus, got.Top, got.End, got.High, got.First)
			}
		})
	}
}
