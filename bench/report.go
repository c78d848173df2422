package bench

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"
)

//go:embed report.html
var reportPage string

// page is the content of report.html.
type page struct {
	Header  Header
	Summary *Summary
	Runs    []*Run
	Charts  []chart
}

// chart is a plot with its heading and an explanation.
type chart struct {
	Title, Note string
	Plot        template.HTML
}

// WriteHTML writes a report that needs no other file.
func (d *Data) WriteHTML(w io.Writer) error {
	s := d.Summarize()
	t, err := template.New("report").Funcs(template.FuncMap{
		"percent": percent, "known": known, "short": short, "add": func(a, b int) int { return a + b },
		"outcomes": func(r *Row) string {
			if text := r.outcomes(); text != "" {
				return r.Subject + ", " + r.Load + ": " + text
			}
			return ""
		},
		"hundred": func(v float64) string { return fmt.Sprintf("%.1f %%", 100*v) },
	}).Parse(reportPage)
	if err != nil {
		return err
	}
	return t.Execute(w, page{d.Header, s, d.Runs, d.charts(s)})
}

// charts returns the plots of a report.
func (d *Data) charts(s *Summary) []chart {
	var closed, all []*Row
	for _, row := range s.Rows {
		if row.Load == s.Rows[0].Load {
			closed = append(closed, row)
		}
		all = append(all, row)
	}
	charts := []chart{{
		"Intents a second", "Load " + s.Rows[0].Load +
			": the median of the rounds, and each round as a dot. More is better.",
		bars(closed, func(r *Row) []float64 { return r.rates }, "%.0f"),
	}}
	if s.Rows[0].Processor > 0 {
		charts = append(charts, chart{
			"Processor time an intent, µs", "Load " + s.Rows[0].Load +
				": of the server alone. Less is better. It repeats better than the rate.",
			bars(closed, func(r *Row) []float64 { return r.processors }, "%.1f"),
		})
	}
	for _, load := range loads(all) {
		var rows []*Row
		for _, row := range all {
			if row.Load == load {
				rows = append(rows, row)
			}
		}
		note := "Counted from when each request was due, waits for a connection included."
		if load == "closed" {
			note = "At saturation: each connection sends its next request when the last is answered."
		}
		charts = append(charts, chart{"Latency, load " + load, note, curves(rows)})
	}
	return charts
}

// loads returns the loads of rows, in their order.
func loads(rows []*Row) (all []string) {
	seen := make(map[string]bool)
	for _, row := range rows {
		if !seen[row.Load] {
			seen[row.Load] = true
			all = append(all, row.Load)
		}
	}
	return all
}

// escaped escapes a text for SVG.
func escaped(text string) string { return template.HTMLEscapeString(text) }

// svg begins a picture with a width and a height. The picture shrinks with the page.
func svg(b *strings.Builder, width, height int, label string) {
	fmt.Fprintf(b, `<svg viewBox="0 0 %d %d" role="img" aria-label="%s">`, width, height, escaped(label))
}
