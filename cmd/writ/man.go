package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/alecthomas/kong"
)

type manCmd struct {
	Dir string `arg:"" type:"path" help:"Directory to write the pages into."`
}

func (c *manCmd) Help() string {
	return `Writes writ.1, and a page for each verb, such as writ-serve.1. The packages install them.

  writ man /usr/local/share/man/man1`
}

func (c *manCmd) Run(k *kong.Context) error {
	if err := os.MkdirAll(c.Dir, 0o755); err != nil { //nolint:gosec // everybody may read a manual
		return fmt.Errorf("making %s: %w", c.Dir, err)
	}
	for _, node := range append(k.Model.Leaves(true), k.Model.Node) {
		name := manName(node)
		file := filepath.Join(c.Dir, name+".1")
		if err := os.WriteFile(file, []byte(manPage(node)), 0o644); err != nil { //nolint:gosec // as above
			return fmt.Errorf("writing a page: %w", err)
		}
	}
	return nil
}

// manName returns the name of a verb's page, such as writ-keys-list.
func manName(node *kong.Node) string { return strings.ReplaceAll(node.FullPath(), " ", "-") }

// manPage returns the page of a verb, or of the program, in the macros of man(7).
func manPage(node *kong.Node) string {
	var b strings.Builder
	help, detail := node.Help, node.Detail
	if node.Parent == nil {
		help, detail, _ = strings.Cut(help, "\n\n")
	}
	fmt.Fprintf(&b, ".TH %s 1 \"\" \"\" \"writ\"\n", roff(strings.ToUpper(manName(node))))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(manName(node)), roff(strings.TrimSuffix(help, ".")))
	usage := strings.TrimSpace(strings.TrimPrefix(node.Summary(), node.Path()))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n%s\n", roff(node.FullPath()), roff(usage))
	if detail != "" {
		b.WriteString(".SH DESCRIPTION\n")
		manText(&b, detail)
	}
	if node.Parent == nil {
		b.WriteString(".SH VERBS\n")
		for _, verb := range node.Leaves(true) {
			fmt.Fprintf(&b, ".TP\n.BR %s (1)\n%s\n", roff(manName(verb)), roff(verb.Help))
		}
	}
	if len(node.Positional) > 0 {
		b.WriteString(".SH ARGUMENTS\n")
		for _, arg := range node.Positional {
			fmt.Fprintf(&b, ".TP\n.I %s\n%s\n", roff(arg.Summary()), roff(arg.Help))
		}
	}
	manFlags(&b, node)
	b.WriteString(".SH EXIT STATUS\n0 on success, 1 if something failed, 2 on a usage error, 3 on invalid input. " +
		"A verb with other codes says so.\n")
	if node.Parent != nil {
		b.WriteString(".SH SEE ALSO\n.BR writ (1)\n")
	}
	return b.String()
}

func manFlags(b *strings.Builder, node *kong.Node) {
	b.WriteString(".SH OPTIONS\n")
	for _, group := range node.AllFlags(true) {
		for _, flag := range group {
			fmt.Fprintf(b, ".TP\n.B %s\n%s\n", roff(flag.String()), roff(flag.Help))
			for _, variable := range flag.Envs {
				fmt.Fprintf(b, "Variable: %s.\n", roff(variable))
			}
		}
	}
}

// manText writes paragraphs. Indented lines, which are commands, stay lines.
func manText(b *strings.Builder, text string) {
	verbatim := false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		indented := strings.HasPrefix(line, "  ")
		switch {
		case indented && !verbatim:
			b.WriteString(".nf\n")
		case verbatim && !indented:
			b.WriteString(".fi\n")
		}
		verbatim = indented
		if line == "" {
			b.WriteString(".PP\n")
			continue
		}
		b.WriteString(roff(line) + "\n")
	}
	if verbatim {
		b.WriteString(".fi\n")
	}
}

// roff escapes a text that begins a line.
func roff(text string) string {
	text = strings.Join(strings.Split(text, "\n"), " ")
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`).Replace(text)
	if strings.HasPrefix(text, ".") {
		return `\&` + text
	}
	return text
}
