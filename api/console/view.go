package console

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/text/currency"

	"writ.example/writ/internal/printable"
)

//go:embed web/*.html
var pages embed.FS

// frame is what every page shows around its body.
type frame struct {
	Title   string
	Current string // the name of the navigation's entry
	Who     *session
	Body    any
}

// entry is an entry of the navigation.
type entry struct{ Name, Path string }

// navigation has the twelve names.
var navigation = []entry{
	{"Overview", "/console"},
	{"Decisions", "/console/decisions"},
	{"Approvals", "/console/approvals"},
	{"Agents", "/console/agents"},
	{"Policies", "/console/policies"},
	{"Rules", "/console/rules"},
	{"Keys", "/console/keys"},
	{"Sessions", "/console/sessions"},
	{"Lists", "/console/lists"},
	{"Webhooks", "/console/webhooks"},
	{"Usage", "/console/usage"},
	{"Chain", "/console/chain"},
}

// Navigation returns the entries of the navigation.
func (frame) Navigation() []entry { return navigation }

// templates are read at the first page: a hook is a process of the same program for each call of a tool.
var templates = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Funcs(template.FuncMap{
		"text": printable.Text, "lines": printable.Lines, "short": short, "when": when, "ago": ago, "money": money,
		"words": words, "under": pageOf, "issued": issued,
	}).ParseFS(pages, "web/*.html"))
})

func (c *Console) render(w http.ResponseWriter, status int, name string, f frame) {
	var page bytes.Buffer
	if err := templates().ExecuteTemplate(&page, name, f); err != nil {
		c.cfg.Log.Error("a page of the console cannot be rendered", slog.String("page", name),
			slog.String("error", err.Error()))
		http.Error(w, "The page cannot be shown.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(page.Bytes()) // a browser that is gone
}

// maxShort is the number of characters of a text in a list.
const maxShort = 96

// short is a text of somebody else for a list. A person who approves must see the very
// characters.
func short(s string) string {
	s = printable.Text(s)
	if utf8.RuneCountInString(s) <= maxShort {
		return s
	}
	return string([]rune(s)[:maxShort]) + "…"
}

// quoted is short for a sentence.
func quoted(s string) string { return "“" + short(s) + "”" }

// when is an exact time.
func when(at any) template.HTML {
	t, ok := at.(time.Time)
	if p, is := at.(*time.Time); is && p != nil {
		t, ok = *p, true
	}
	if !ok || t.IsZero() {
		return "–"
	}
	t = t.UTC()
	return template.HTML(`<time datetime="` + t.Format(time.RFC3339Nano) + `">` + t.Format("2006-01-02 15:04:05") +
		` UTC</time>`) //nolint:gosec // digits alone
}

// issued is a time as an agent has sent it: exact where it is one.
func issued(s string) any {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return printable.Text(s)
	}
	return when(t)
}

// ago returns the time between two times, in its greatest unit.
func ago(d time.Duration) string {
	switch d = d.Abs(); {
	case d < 2*time.Minute:
		return strconv.Itoa(int(d.Seconds())) + " s"
	case d < 2*time.Hour:
		return strconv.Itoa(int(d.Minutes())) + " min"
	case d < 48*time.Hour:
		return strconv.Itoa(int(d.Hours())) + " h"
	}
	return strconv.Itoa(int(d.Hours()/24)) + " days"
}

// cost is an amount of money.
type cost struct {
	AmountMinor int64  `json:"amount_minor"`
	Currency    string `json:"currency"`
}

// money writes an amount in the unit of its currency.
func money(c *cost) string {
	if c == nil {
		return ""
	}
	unit, err := currency.ParseISO(c.Currency)
	if err != nil {
		return strconv.FormatInt(c.AmountMinor, 10) + " minor units of " + short(c.Currency)
	}
	digits, _ := currency.Standard.Rounding(unit)
	whole := strconv.FormatInt(c.AmountMinor, 10)
	if digits > 0 {
		sign := ""
		if strings.HasPrefix(whole, "-") {
			sign, whole = "-", whole[1:]
		}
		whole = fmt.Sprintf("%0*s", digits+1, whole)
		whole = sign + whole[:len(whole)-digits] + "." + whole[len(whole)-digits:]
	}
	return whole + " " + c.Currency
}

// words says an outcome as a person says it.
func words(outcome string) string {
	switch outcome {
	case "allow":
		return "Allowed"
	case "deny":
		return "Denied"
	case "approval_required":
		return "Waits for approval"
	}
	return short(outcome)
}

// pageOf returns the path of a document's page.
func pageOf(list, id string, more ...string) string {
	at := strings.TrimPrefix(under(append([]string{list, id}, more...)...), "/v1")
	return cookiePath + at
}
