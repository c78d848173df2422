package bench

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// hookAnswer is an allow, as a server answers it.
const hookAnswer = `{"ok":true,"approved":true,"reasons":["policy.allowed: version 1 of the policy allows it"],` +
	`"decision_id":"0198f3c2-7a10-7c3e-9d41-5b1f6f0a9e37","receipt":{"decision":"allow",` +
	`"decision_id":"0198f3c2-7a10-7c3e-9d41-5b1f6f0a9e37",` +
	`"digest":"sha256:b6ac64c07aebfa529a11e66abf79d5d2e382a18cd21751607fde6ffdf3bbeb0b","exp":9007199254740991,` +
	`"sig":"AWV4YW1wbGUtY2hhaW4tMDEAAAAAAAAAAQAAAAIAAAGjGFxQewAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAMQBz-HKnCNp7zdZ2` +
	`wdeaYorKAd_imiXmLxjmKovnB6c5obNHVTdoLogrBMhHdvq1HrFhe3p60_u-txNq0frKAQAAAAB5hxJ4xL4e7OyDavZuknLtggLb53STV_rKEdz8wPWgtA",` +
	`"kid":"1IG2tMH7J2wbJZnOf8LJzQitKf7LMvoAElsuDMVM54Y"}}`

// BenchmarkHook measures what a process of writ hook takes beyond the decision, from its start to its
// end: the server answers at once. p50-ms and p99-ms are over all processes of a run. true-p50-ms is a
// process that does nothing, for comparison, and of-20ms is p50-ms over the 20 ms that it may take.
func BenchmarkHook(b *testing.B) {
	writ := filepath.Join(b.TempDir(), "writ")
	if said, err := exec.Command("go", "build", "-o", writ, "writ.example/writ/cmd/writ").CombinedOutput(); err != nil {
		b.Fatalf("building writ: %v\n%s", err, said)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, hookAnswer)
	}))
	defer server.Close()
	state := filepath.Join(b.TempDir(), "state")
	env := append(os.Environ(), "WRIT_API_KEY=k")
	var took, floor []time.Duration
	for n := 0; b.Loop(); n++ {
		cmd := exec.Command(writ, "hook", "claude", "--url", server.URL, "--policy-id", "0c0ffee0-0000-4000-8000-00000000000a",
			"--state", state)
		cmd.Env = env
		cmd.Stdin = strings.NewReader(fmt.Sprintf(
			`{"session_id":"s","cwd":"/srv","tool_name":"Bash","tool_use_id":"t%d","tool_input":{"command":"ls"}}`, n))
		start := time.Now()
		if said, err := cmd.CombinedOutput(); err != nil || string(said) != "{}\n" {
			b.Fatalf("the hook: %v, %s", err, said)
		}
		took = append(took, time.Since(start))
		start = time.Now()
		if err := exec.Command("true").Run(); err != nil {
			b.Fatal(err)
		}
		floor = append(floor, time.Since(start))
	}
	slices.Sort(took)
	slices.Sort(floor)
	ms := func(all []time.Duration, share int) float64 {
		return float64(all[len(all)*share/100].Microseconds()) / 1000
	}
	b.ReportMetric(ms(took, 50), "p50-ms")
	b.ReportMetric(ms(took, 99), "p99-ms")
	b.ReportMetric(ms(floor, 50), "true-p50-ms")
	b.ReportMetric(ms(took, 50)/20, "of-20ms")
}
