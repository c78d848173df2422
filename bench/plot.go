package bench

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"
	"time"
)

// The sizes of plots, in units of the SVG.
const (
	plotWidth = 720
	barHeight = 30
	nameWidth = 130
	tailWidth = 90 // the width of the number after a bar
)

// colors is how many CSS classes c0, c1, … the page has.
const colors = 6

// bars draws a bar for the median of each row, and a dot for each round.
func bars(rows []*Row, values func(*Row) []float64, format string) template.HTML {
	most := 0.0
	for _, row := range rows {
		most = max(most, slices.Max(append(values(row), 0)))
	}
	if most == 0 {
		most = 1
	}
	x := func(v float64) float64 { return nameWidth + v/most*(plotWidth-nameWidth-tailWidth) }
	var b strings.Builder
	svg(&b, plotWidth, barHeight*len(rows)+6, "bars")
	for i, row := range rows {
		y, m := barHeight*i+4, median(values(row))
		fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end">%s</text>`, nameWidth-8, y+16, escaped(row.Subject))
		fmt.Fprintf(&b, `<rect class="c%d" x="%d" y="%d" width="%.1f" height="20" rx="2"/>`, i%colors, nameWidth, y,
			max(1, x(m)-nameWidth))
		for _, v := range values(row) {
			fmt.Fprintf(&b, `<circle class="dot" cx="%.1f" cy="%d" r="3"/>`, x(v), y+10)
		}
		number := "not known"
		if len(values(row)) > 0 {
			number = fmt.Sprintf(format, m)
		}
		last := slices.Max(append(values(row), m))
		fmt.Fprintf(&b, `<text x="%.1f" y="%d">%s</text>`, x(last)+8, y+16, number)
	}
	b.WriteString("</svg>")
	return template.HTML(b.String()) //nolint:gosec // names are escaped, the rest are numbers
}

// The height and the margins of curves.
const (
	curveHeight              = 330
	left, right, top, bottom = 84, 14, 14, 40
)

// curves draws latency by percentile. The axis of percentiles is the axis of HdrHistogram's
// plots: each step leaves a tenth. The axis of latency is logarithmic.
func curves(rows []*Row) template.HTML {
	least, most, count := time.Duration(math.MaxInt64), time.Duration(0), int64(0)
	for _, row := range rows {
		if row.Scheduled.Count() > 0 {
			least, most = min(least, row.Scheduled.At(0)), max(most, row.Scheduled.At(1))
			count = max(count, row.Scheduled.Count())
		}
	}
	if most == 0 {
		return ""
	}
	from, to := math.Floor(math.Log10(least.Seconds())), math.Ceil(math.Log10(most.Seconds()))
	if from == to {
		to++
	}
	nines := max(1, math.Floor(math.Log10(float64(count)))) // how many nines the number of requests supports
	x := func(q float64) float64 {
		at := nines
		if q < 1 {
			at = min(nines, -math.Log10(1-q))
		}
		return left + at/nines*(plotWidth-left-right)
	}
	y := func(d time.Duration) float64 {
		share := (math.Log10(d.Seconds()) - from) / (to - from)
		return curveHeight - bottom - share*(curveHeight-top-bottom)
	}
	var b, legend strings.Builder
	svg(&b, plotWidth, curveHeight, "latency by percentile")
	grid(&b, from, to, nines, y)
	for i, row := range rows {
		if row.Scheduled.Count() == 0 {
			continue
		}
		b.WriteString(`<polyline class="line c` + fmt.Sprint(i%colors) + `" points="`)
		const steps = 40 // steps for each nine
		for n := range int(nines)*steps + 1 {
			q := 1 - math.Pow(10, -float64(n)/steps)
			fmt.Fprintf(&b, "%.1f,%.1f ", x(q), y(row.Scheduled.At(q)))
		}
		b.WriteString(`"/>`)
		fmt.Fprintf(&legend, `<li class="key%d">%s: p50 %s, p99 %s, p99.9 %s, most %s`, i%colors, escaped(row.Subject),
			short(row.Scheduled.At(.5)), short(row.Scheduled.At(.99)), short(row.Scheduled.At(.999)),
			short(row.Scheduled.At(1)))
	}
	b.WriteString(`</svg><ul class="legend">` + legend.String() + "</ul>")
	return template.HTML(b.String()) //nolint:gosec // names are escaped, the rest are numbers
}

// grid draws the axes of curves. The axis of latency has the powers of ten from 10^from to
// 10^to, in seconds. The axis of percentiles has nines nines.
func grid(b *strings.Builder, from, to, nines float64, y func(time.Duration) float64) {
	for p := from; p <= to; p++ {
		d := time.Duration(math.Round(math.Pow(10, p) * 1e9))
		fmt.Fprintf(b, `<line class="grid" x1="%d" x2="%d" y1="%.1f" y2="%.1f"/>`, left, plotWidth-right, y(d), y(d))
		fmt.Fprintf(b, `<text x="%d" y="%.1f" text-anchor="end">%v</text>`, left-6, y(d)+4, d)
	}
	for n := 0.0; n <= nines; n++ {
		x := left + n/nines*(plotWidth-left-right)
		name, anchor := "0 %", "middle"
		if n > 0 {
			name = fmt.Sprintf("%.*f %%", max(0, int(n)-2), 100*(1-math.Pow(10, -n)))
		}
		if n == nines {
			anchor = "end"
		}
		fmt.Fprintf(b, `<line class="grid" x1="%.1f" x2="%.1f" y1="%d" y2="%d"/>`, x, x, top, curveHeight-bottom)
		fmt.Fprintf(b, `<text x="%.1f" y="%d" text-anchor="%s">%s</text>`, x, curveHeight-bottom+18, anchor, name)
	}
}
