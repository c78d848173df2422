package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
)

// chartSchema is the schema of the values of the Helm chart.
const chartSchema = "../../deploy/helm/writ/values.schema.json"

// chartsOwn are the settings that the chart's values do not take: those that its pods are made for, and tls-client-ca, for
// whose certificate a probe is never asked.
var chartsOwn = []string{
	"addr", "admin-addr", "data", "store", "replica", "drain-timeout", "signing-key", "operator-secret", "scrub-key",
	"tls-cert", "tls-key", "tls-client-ca",
	"ext-authz", "ext-authz-cert", "ext-authz-key", "ext-authz-client-ca", "ext-authz-api-key-file", "ext-authz-policy-id", "ext-authz-agent-id",
}

// chartSecrets are the settings that the chart takes from secrets alone.
var chartSecrets = []string{
	"mongodb-uri", "service-token", "evaluation-core-token", "kafka-password", "stripe-key", "stripe-webhook-secret",
}

// TestChart_TakesTheSettingsOfServe holds the schema of the Helm chart's values to the flags of writ serve. -update
// writes them into it.
func TestChart_TakesTheSettingsOfServe(t *testing.T) {
	parser, _, err := serveAlone()
	must(t, err)
	flags := settingsOf(parser.Model.Children[0])
	var all object
	text, err := configSchema()
	must(t, err)
	must(t, json.Unmarshal(text, &all))
	settings := all["properties"].(map[string]any)
	secrets := make(object)
	for _, name := range slices.Concat(chartsOwn, chartSecrets) {
		if flags[name] == nil {
			t.Errorf("serve has no setting %s", name)
		}
		delete(settings, name)
	}
	for _, name := range chartSecrets {
		variable := envPrefix + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
		secrets[variable] = object{"$ref": "#/$defs/secret"}
	}
	for name := range settings {
		for _, word := range []string{"token", "key", "secret", "password", "uri"} {
			if f := flags[name]; strings.Contains(name, word) && f.PlaceHolder != "FILE" && !f.IsBool() {
				t.Errorf("%s may be secret: name it in chartSecrets", name)
			}
		}
	}

	file, err := os.ReadFile(chartSchema)
	must(t, err)
	var schema object
	must(t, json.Unmarshal(file, &schema))
	values := schema["properties"].(map[string]any)
	values["config"].(map[string]any)["properties"] = settings
	values["secrets"].(map[string]any)["properties"] = secrets
	want, err := json.Marshal(schema, json.Deterministic(true), jsontext.WithIndent("  "))
	must(t, err)
	want = append(want, '\n')
	if *update {
		must(t, os.WriteFile(chartSchema, want, 0o644))
		return
	}
	if diff := cmp.Diff(string(want), string(file)); diff != "" {
		t.Errorf("%s does not fit the flags (-want +got): run go test ./cmd/writ -run TestChart -update\n%s", chartSchema, diff)
	}
}
