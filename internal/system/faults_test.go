//go:build linux

package system

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestDashboardsAndAlerts_OnARealPrometheus checks dashboards and alerts. A real Prometheus scrapes
// real servers behind a real HAProxy. Meanwhile the test causes every outcome and every fault. Each
// query of each panel must return data, both as an instant query and over time. Each alert must
// fire.
func TestDashboardsAndAlerts_OnARealPrometheus(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED in short mode: waits for Prometheus, and tests other processes")
	}
	program := needDebian(t, "usr/bin/prometheus", "prometheus")
	balancer := needDebian(t, "usr/sbin/haproxy", haproxyPackages...)

	f := startFleet(t)
	api, metrics, haproxy := startHAProxy(t, balancer, f.first.process, f.second.process)
	targets := map[string][]string{"haproxy": {metrics}}
	for _, r := range f.all() {
		targets["writ"] = append(targets["writ"], hostOf(r.admin))
	}
	p := startPrometheus(t, program, targets)
	p.waitUp(t, len(f.all())+1)

	release := background(t, 1, f.first.token, func(s sender) bool {
		_, err := s.evaluate(api, newIntent("bot", "deploy", "k8s/staging/web"))
		time.Sleep(time.Millisecond) // keeps the load small
		return err == nil
	})
	defer release()
	for range 2 { // the first run creates the series, the second changes them
		f.causeOutcomes(t)
		f.expire(t)
		time.Sleep(1500 * time.Millisecond)
	}
	f.refuseEvents(t)
	f.freeze(t, p)
	p.fire(t, map[string]bool{"WritQueue": true}) // first, because later requests dilute the share of long waits
	f.overload(t)
	if f.set != nil {
		f.refusePlaces(t)
		f.silence(t)
		f.loseMongoDB(t)
	}
	f.breakCore(t)
	f.panic(t)
	f.refuseTip(t)
	if f.full != nil {
		f.fillDisk(t)
	}
	for late := time.Now().Add(patience / 2); ; time.Sleep(100 * time.Millisecond) {
		empty := slices.DeleteFunc(p.emptyPanels(t), func(query string) bool { return f.set == nil && strings.Contains(query, mongodbMetrics) })
		if len(empty) > 0 && time.Now().Before(late) {
			continue
		}
		for _, query := range empty {
			t.Error(query)
		}
		break
	}

	want := make(map[string]bool)
	for _, r := range readAlerts(t) {
		want[r.Alert] = true
	}
	drop := func(names ...string) {
		maps.DeleteFunc(want, func(name string, _ bool) bool { return slices.Contains(names, name) })
	}
	drop("WritQueue") // it has fired
	// They need a sink that is minutes behind and a retention of days. alerts_test.yml fires them.
	drop("WritDecisionLogBehind", "WritDecisionLogLost")
	if f.full == nil {
		drop("WritStoreSpace")
	}
	if f.set == nil {
		drop("WritQuota", "WritRetention", "WritStale", "WritGivenUp", "WritNoConnection")
	}
	if f.full == nil && f.set == nil {
		drop("WritRefuses")
	}
	// alerts_test.yml fires WritClock: no test sets a clock for minutes.
	drop("WritClock")
	drop("WritReplicaDown", "WritDown", "WritBalancerDown", "WritNoLeader") // while all servers run
	p.fire(t, want)
	release()
	f.odd.kill(t)
	p.fire(t, map[string]bool{"WritReplicaDown": true})
	for _, r := range f.all() {
		if r != f.shares {
			r.kill(t)
		}
	}
	if f.shares != nil { // without MongoDB only these alerts remain
		p.fire(t, map[string]bool{"WritNoLeader": true})
		f.shares.kill(t)
	}
	killProgram(haproxy)
	p.fire(t, map[string]bool{"WritDown": true, "WritBalancerDown": true})
}

// emptyPanels returns the queries of panels that return nothing or no number. It runs each as
// an instant query and over time.
func (p *promServer) emptyPanels(t *testing.T) []string {
	t.Helper()
	var empty []string
	for _, d := range readDashboards(t) {
		for _, panel := range d.Panels {
			for _, target := range panel.Targets {
				expr := variable.ReplaceAllStringFunc(target.Expr, func(v string) string {
					if value := ofGrafana[strings.TrimPrefix(v, "$")]; value != "" {
						return value
					}
					return ".*"
				})
				for kind, query := range map[string]func(string) ([]sample, error){"now": p.query, "over time": p.queryRange} {
					samples, err := query(expr)
					if err != nil {
						t.Fatalf("%s: panel %q: %s: %v", d.file, panel.Title, expr, err)
					}
					if !slices.ContainsFunc(samples, func(s sample) bool { return !math.IsNaN(s.value) }) {
						empty = append(empty, fmt.Sprintf("%s: panel %q has nothing %s: %s", d.file, panel.Title, kind, expr))
					}
				}
			}
		}
	}
	return empty
}
