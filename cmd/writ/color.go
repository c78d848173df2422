package main

import (
	"io"
	"os"

	"github.com/mattn/go-isatty"

	"writ.example/writ/engine"
)

// colors reports whether output is coloured. It is coloured on a terminal, unless NO_COLOR is
// set (no-color.org).
type colors bool

func colorsFor(out io.Writer) colors {
	f, ok := out.(*os.File)
	return colors(ok && isatty.IsTerminal(f.Fd()) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb")
}

// These colours of ECMA-48 are readable on a light and on a dark terminal.
const (
	bold   = "1"
	red    = "31"
	green  = "32"
	yellow = "33"
)

func (c colors) in(colour, text string) string {
	if !c {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

func (c colors) bold(text string) string { return c.in(bold, text) }

func (c colors) decision(text, decision string) string {
	switch decision {
	case engine.Allow.String():
		return c.in(green, text)
	case engine.Deny.String():
		return c.in(red, text)
	}
	return c.in(yellow, text)
}
