package browser

import (
	"os"
	"path/filepath"
	"testing"

	cdp "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// TestPictures makes the pictures of docs/console.md in the directory that $PICTURES names: make pictures.
func TestPictures(t *testing.T) {
	dir := os.Getenv("PICTURES")
	if dir == "" {
		t.Skip("make pictures makes them")
	}
	c := openConsole(t)
	c.fill(t, "demo")
	quality := int64(80)
	for _, p := range []struct {
		name, path, first string
		screen            int
	}{
		{"overview", "/console", "", 0},
		{"decision", "/console/decisions?decision=deny", `#rows tbody a`, 1},
		{"approval", "/console/approvals", `.rows tbody a`, 2},
		{"stop", "/console/stop", "", 3},
	} {
		s := screens[p.screen]
		tab, _ := watch(t, c.browser, c.base)
		s.emulate(t, tab)
		c.signIn(t, tab, "demo")
		run(t, tab, chromedp.Navigate(c.base+p.path), chromedp.WaitReady(chromedp.CSS(`main h1`)))
		if p.first != "" {
			run(t, tab, chromedp.Click(chromedp.CSS(p.first)), chromedp.WaitReady(chromedp.CSS(`main dl`)))
		}
		shot, err := chromedp.Call(tab, cdp.CaptureScreenshot, cdp.CaptureScreenshotParams{Format: "jpeg", Quality: &quality})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "console-"+p.name+".jpg"), shot.Data, 0o644); err != nil {
			t.Fatal(err)
		}
		run(t, tab, chromedp.Navigate(c.base+"/console"), chromedp.Click(chromedp.CSS(`form[action$="/logout"] button`)), chromedp.WaitReady(chromedp.CSS(`#credential`)))
	}
}
