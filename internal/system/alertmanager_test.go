package system

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const alertmanagerFile = "../../deploy/alertmanager/alertmanager.yml"

// pager is a server that receives the messages of Alertmanager.
type pager struct {
	url      string
	messages chan message
}

// message is one message to a receiver. Receiver is the receiver's name in alertmanagerFile.
type message struct {
	Receiver, Status string
	Alerts           []struct{ Labels, Annotations map[string]string }
}

// String returns the receiver and the alerts in one line.
func (m message) String() string {
	var names []string
	for _, a := range m.Alerts {
		names = append(names, a.Labels["alertname"])
	}
	slices.Sort(names)
	return fmt.Sprintf("%s, %s: %s", m.Receiver, m.Status, strings.Join(slices.Compact(names), " "))
}

// newPager starts a pager, which ends with the test.
func newPager(t *testing.T) *pager {
	t.Helper()
	p := &pager{messages: make(chan message, 64)}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m message
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil || r.URL.Path != "/"+m.Receiver {
			t.Errorf("Alertmanager sent %s of %q, %v", r.URL, m.Receiver, err)
		}
		select {
		case p.messages <- m:
		default: // the channel is full because no test reads it
		}
	}))
	t.Cleanup(s.Close)
	p.url = s.URL
	return p
}

// needAlertmanager returns Debian's Alertmanager, in the version of docker-compose.yml. The program
// reads templates from /usr/share. If the package is unpacked but not installed, needAlertmanager
// returns a patched copy of the program. dir is the directory below which the copy finds its
// templates.
func needAlertmanager(t *testing.T) (program debian, dir string) {
	t.Helper()
	const name, templates = "usr/bin/prometheus-alertmanager", "/usr/share/prometheus/alertmanager"
	program = needDebian(t, name, "prometheus-alertmanager")
	dir, unpacked := strings.CutSuffix(program.path, "/"+name)
	if _, err := os.Stat(templates); err == nil || !unpacked {
		return program, ""
	}
	text, err := os.ReadFile(program.path)
	must(t, err)
	relative := []byte("usr/share/prometheus//alertmanager") // as long as the replaced path
	if !bytes.Contains(text, []byte(templates)) || len(relative) != len(templates) {
		t.Fatalf("%s does not read %s", program.path, templates)
	}
	program.path = filepath.Join(t.TempDir(), "alertmanager")
	must(t, os.WriteFile(program.path, bytes.ReplaceAll(text, []byte(templates), relative), 0o700)) //nolint:gosec // a program
	return program, dir
}

// startAlertmanager starts Alertmanager with deploy/alertmanager/alertmanager.yml and returns its
// address. Messages to the receivers of a deployment go to p. Two settings differ from a
// deployment, because the test must be short and counts messages. Alertmanager collects alerts for
// only 3 s, and sends no second message about a group.
func startAlertmanager(t *testing.T, p *pager) (addr string) {
	t.Helper()
	program, templates := needAlertmanager(t)
	dir := t.TempDir()
	config := filepath.Join(dir, "alertmanager.yml")
	rewriteYAML(t, alertmanagerFile, config, func(file map[string]any) {
		route := file["route"].(map[string]any)
		route["group_wait"], route["group_interval"] = "3s", "1h"
		for _, r := range file["receivers"].([]any) {
			r := r.(map[string]any)
			for _, hook := range r["webhook_configs"].([]any) {
				hook := hook.(map[string]any)
				given := hook["url"].(string)
				hook["url"] = p.url + given[strings.LastIndexByte(given, '/'):]
			}
		}
	})
	addr = freeAddr(t)
	cmd := program.command(context.Background(), "--config.file", config, "--storage.path", filepath.Join(dir, "data"),
		"--web.listen-address", addr, "--cluster.listen-address", "", "--log.level", "warn")
	cmd.Dir = templates
	startProgram(t, cmd, t.Output())
	waitFor(t, "Alertmanager to be ready", func() bool {
		resp, err := http.Get("http://" + addr + "/-/ready")
		return err == nil && resp.Body.Close() == nil && resp.StatusCode == http.StatusOK
	})
	return addr
}

// TestAlertmanager_SendsOneMessageForEachSeverity runs a real Prometheus that finds no replica, so
// alerts of both severities fire. A real Alertmanager must send each receiver one message with all
// alerts of its severity.
func TestAlertmanager_SendsOneMessageForEachSeverity(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED in short mode: waits for Prometheus")
	}
	prometheus := needDebian(t, "usr/bin/prometheus", "prometheus")
	if out, err := needDebian(t, "usr/bin/amtool", "prometheus-alertmanager").
		command(t.Context(), "check-config", alertmanagerFile).CombinedOutput(); err != nil {
		t.Errorf("amtool refuses %s: %v\n%s", alertmanagerFile, err, out)
	}
	severities := make(map[string]string)
	for _, r := range readAlerts(t) {
		severities[r.Alert] = r.Labels["severity"]
	}
	pager := newPager(t)
	p := startPrometheus(t, prometheus, map[string][]string{
		"writ": {freeAddr(t), freeAddr(t)}, "alertmanager": {startAlertmanager(t, pager)},
	})

	got := make(map[string][]string)
	for late := time.After(patience); len(got) < 2; {
		select {
		case m := <-pager.messages:
			got[m.Receiver] = append(got[m.Receiver], m.String())
			for _, a := range m.Alerts {
				name := a.Labels["alertname"]
				if severities[name] != m.Receiver || a.Annotations["summary"] == "" || a.Annotations["runbook_url"] == "" {
					t.Errorf("%s got %s, which is of severity %q, with %v", m.Receiver, name, severities[name], a.Annotations)
				}
			}
		case <-late:
			t.Fatalf("the receivers got %v while %v fire, want a page and a ticket", got, p.firing(t))
		}
	}
	select {
	case m := <-pager.messages:
		t.Errorf("after %v a receiver got another message: %s", got, m)
	case <-time.After(5 * time.Second):
	}
	for receiver, want := range map[string]string{"page": "WritDown", "ticket": "WritReplicaDown"} {
		if len(got[receiver]) != 1 || !strings.Contains(got[receiver][0], want) {
			t.Errorf("%s got %q, want one message with %s", receiver, got[receiver], want)
		}
	}
}
