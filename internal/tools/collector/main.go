// Collector is an OpenTelemetry collector with the official receiver of OTLP. It prints the body of each
// log record as a line. Its argument is the address to listen on. It is a module of its own, because a
// collector needs more modules than all of writ.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/yamlprovider"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/otelcol"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/service/telemetry/otelconftelemetry"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: collector ADDRESS")
	}
	config := `yaml:
receivers: {otlp: {protocols: {http: {endpoint: "` + os.Args[1] + `"}}}}
exporters: {lines: {}}
service:
  telemetry: {metrics: {level: none}}
  pipelines: {logs: {receivers: [otlp], exporters: [lines]}}
`
	col, err := otelcol.NewCollector(otelcol.CollectorSettings{
		BuildInfo: component.BuildInfo{Command: "collector"},
		Factories: factories,
		ConfigProviderSettings: otelcol.ConfigProviderSettings{ResolverSettings: confmap.ResolverSettings{
			URIs: []string{config}, ProviderFactories: []confmap.ProviderFactory{yamlprovider.NewFactory()},
		}},
	})
	if err == nil {
		err = col.Run(context.Background())
	}
	if err != nil {
		log.Fatal(err)
	}
}

func factories() (f otelcol.Factories, err error) {
	f.Telemetry = otelconftelemetry.NewFactory()
	if f.Receivers, err = otelcol.MakeFactoryMap[receiver.Factory](otlpreceiver.NewFactory()); err != nil {
		return f, err
	}
	f.Exporters, err = otelcol.MakeFactoryMap[exporter.Factory](exporter.NewFactory(
		component.MustNewType("lines"), func() component.Config { return &struct{}{} },
		exporter.WithLogs(newLines, component.StabilityLevelDevelopment),
	))
	return f, err
}

// lines is an exporter to standard output.
type lines struct {
	component.StartFunc
	component.ShutdownFunc
	consumer.Logs
}

func newLines(context.Context, exporter.Settings, component.Config) (exporter.Logs, error) {
	write, err := consumer.NewLogs(func(_ context.Context, all plog.Logs) error {
		for _, of := range all.ResourceLogs().All() {
			for _, scope := range of.ScopeLogs().All() {
				for _, r := range scope.LogRecords().All() {
					if _, err := fmt.Println(r.Body().Str()); err != nil {
						return err
					}
				}
			}
		}
		return nil
	})
	return lines{Logs: write}, err
}
