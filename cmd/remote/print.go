package remote

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"writ.example/writ/engine"
	"writ.example/writ/internal/printable"
)

// maxCell is the longest text in a table, in characters.
const maxCell = 44

// Table prints rows below the names of their columns. A text that is too long for its cell is cut.
func Table(w io.Writer, columns []string, rows [][]string) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{columns}, rows...) {
		for i, text := range row {
			if i > 0 {
				fmt.Fprint(t, "\t")
			}
			fmt.Fprint(t, cell(text))
		}
		fmt.Fprintln(t)
	}
	return t.Flush() //nolint:wrapcheck // of the standard output
}

// table decodes items, and prints a row of each below the names of the columns.
func table[T any](w io.Writer, columns []string, items []jsontext.Value, row func(T) []string) error {
	rows := make([][]string, len(items))
	for i, item := range items {
		var v T
		if err := decode(item, &v); err != nil {
			return err
		}
		rows[i] = row(v)
	}
	return Table(w, columns, rows)
}

func cell(text string) string {
	text = printable.Text(text)
	if text == "" {
		return "-"
	}
	if r := []rune(text); len(r) > maxCell {
		return string(r[:maxCell-1]) + "…"
	}
	return text
}

// Fields prints names and values, whole and one a line. It leaves out empty values.
func Fields(w io.Writer, pairs ...string) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			fmt.Fprintf(t, "%s\t%s\n", printable.Text(pairs[i]), printable.Text(pairs[i+1]))
		}
	}
	return t.Flush() //nolint:wrapcheck // of the standard output
}

// JSON prints a value in a line. Characters that show nothing are escaped.
func JSON(w io.Writer, v any) error {
	data, err := json.Marshal(v, json.Deterministic(true))
	if err == nil {
		err = (*jsontext.Value)(&data).Compact()
	}
	if err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	_, err = fmt.Fprintln(w, printable.Text(string(data)))
	return err //nolint:wrapcheck // of the standard output
}

// decode decodes a server's document into v. Each text in it is as [printable.Text] returns it, so that it
// can be printed by what knows nothing of strangers.
func decode(doc jsontext.Value, v any) error {
	duplicates := jsontext.AllowDuplicateNames(true)
	var b bytes.Buffer
	from, to := jsontext.NewDecoder(bytes.NewReader(doc), duplicates), jsontext.NewEncoder(&b, duplicates)
	for {
		token, err := from.ReadToken()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil && token.Kind() == '"' {
			fit := printable.Text
			if strings.HasSuffix(string(from.StackPointer()), "/condition") {
				fit = printable.Lines // an author's, which is printed with its lines indented
			}
			token = jsontext.String(fit(token.String()))
		}
		if err == nil {
			err = to.WriteToken(token)
		}
		if err != nil {
			return fmt.Errorf("reading the answer: %w", err)
		}
	}
	if err := json.Unmarshal(b.Bytes(), v, duplicates); err != nil {
		return fmt.Errorf("reading the answer: %w", err)
	}
	return nil
}

// Time returns a time as texts have it, or nothing for none.
func Time(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// Left returns how long it is until t.
func Left(t, now time.Time) string {
	d := t.Sub(now)
	switch {
	case d <= 0:
		return "over"
	case d < time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", d/time.Minute)
	}
	return fmt.Sprintf("%d h", d/time.Hour)
}

// Cost returns an amount in minor units, as policies have it, or nothing for none.
func Cost(c *engine.Cost) string {
	if c == nil {
		return ""
	}
	return strconv.FormatInt(c.AmountMinor, 10) + " minor units of " + c.Currency
}
