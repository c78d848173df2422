package browser

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestReport holds the report of writ bench to what pages are held to, as a file.
func TestReport(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command(os.Getenv("WRIT"), "bench", "--peer", "floor", "--rounds", "1", "--duration", "300ms", "--warmup", "0s",
		"--conns", "4", "--max-other", "0", "--pin", "off", "--out", filepath.Join(dir, "report"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("writ bench: %v\n%s", err, out)
	}
	browser := chromium(t)
	for _, s := range screens {
		t.Run(s.name, func(t *testing.T) {
			tab, w := watch(t, browser, "file://"+dir)
			s.emulate(t, tab)
			p := page{"report", "/report.html", "svg polyline"}
			visit(t, tab, w, s, p, "load", chromedp.Navigate("file://"+dir+p.path))
			shoot(t, tab, s.name+"-"+p.name)
			if n := ask(t, tab, chromedp.Evaluate[int](`document.querySelectorAll("svg").length`)); n != 4 {
				t.Errorf("%d plots, want those of rate, processor time and two loads", n)
			}
		})
	}
}
