package main

import (
	"io"
	"os"

	"github.com/mattn/go-isatty"

	"writ/engine"
)

// paint colours what people read. It is false where nobody does: outside a
// terminal, and where NO_COLOR is set (no-color.org).
type paint bool

func paintFor(out io.Writer) paint {
	f, ok := out.(*os.File)
	return paint(ok && isatty.IsTerminal(f.Fd()) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb")
}

// The colours of ECMA-48 that a light and a dark terminal both show well.
const (
	bold   = "1"
	red    = "31"
	green  = "32"
	yellow = "33"
)

func (p paint) in(colour, text string) string {
	if !p {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

func (p paint) bold(text string) string { return p.in(bold, text) }

// decision paints text in the colour of a decision.
func (p paint) decision(text, decision string) string {
	switch decision {
	case engine.Allow.String():
		return p.in(green, text)
	case engine.Deny.String():
		return p.in(red, text)
	}
	return p.in(yellow, text)
}
