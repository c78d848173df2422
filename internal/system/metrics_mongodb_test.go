package system

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"writ.example/writ/storage/mongodb/mongotest"
)

// mongodbMetrics is the prefix of the metrics of the store mongodb.
const mongodbMetrics = "writ_mongodb_"

// storeMetrics is the prefix of the metrics of the embedded store.
const storeMetrics = "writ_store_"

// TestMetrics_IdleReplica checks the number of samples on an idle replica. Such a replica sends
// heartbeats, watches changes and looks for other replicas. Each of these commands has a histogram
// with 15 samples.
func TestMetrics_IdleReplica(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED in short mode: starts a replica set")
	}
	data, _ := newData(t)
	idle(t, start(t, data, decisionLog(t), "--store=mongodb", "--mongodb-uri", mongotest.For(t, 1).URI()), 570, storeMetrics)
}

// TestMetrics_MongoDB compares docs/metrics.md with GET /metrics on the store mongodb. It also
// checks that neither shows a credential of the store.
func TestMetrics_MongoDB(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED in short mode: starts a replica set")
	}
	set := mongotest.SecureFor(t)
	data, _ := newData(t)
	p := start(t, data, append(allFeatures(t), "--store=mongodb", "--mongodb-uri", set.URI())...)
	exercise(t, p, data)
	shown, documented := families(t, p), readMetricsTable(t)
	for name := range shown {
		if _, ok := documented[name]; !ok {
			t.Errorf("docs/metrics.md has no row for %s", name)
		}
	}
	for name, row := range documented {
		if !strings.HasPrefix(name, mongodbMetrics) {
			continue
		}
		f, ok := shown[name]
		if !ok {
			t.Errorf("docs/metrics.md has a row for %s, which /metrics does not show", name)
			continue
		}
		row.compare(t, f)
	}
	text, _ := scrape(t, p, acceptText)
	command := regexp.MustCompile(`^(abortTransaction|aggregate|commitTransaction|delete|find|findAndModify|getMore|insert|update|other)$`)
	for _, label := range regexp.MustCompile(`command="([^"]*)"`).FindAllSubmatch(text, -1) {
		if !command.Match(label[1]) {
			t.Errorf("the command %q has metrics, which docs/metrics.md does not name", label[1])
		}
	}
	for _, secret := range []string{mongotest.Password, "127.0.0.1", "zq7canary"} {
		if bytes.Contains(text, []byte(secret)) {
			t.Errorf("the metrics show %q", secret)
		}
	}
	lintMetrics(t, p)
}
