package main

import (
	"embed"
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"
)

// completions are scripts that ask the hidden verb complete.
//
//go:embed completion
var completions embed.FS

type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"The shell: bash, zsh or fish."`
}

func (c *completionCmd) Help() string {
	return `Prints a script that completes verbs, flags and their values. The packages install it.

  source <(writ completion bash)     # in ~/.bashrc
  source <(writ completion zsh)      # in ~/.zshrc, after compinit
  writ completion fish | source      # in ~/.config/fish/config.fish`
}

func (c *completionCmd) Run(s streams) error {
	text, err := completions.ReadFile("completion/writ." + c.Shell)
	if err != nil {
		return fmt.Errorf("reading the script: %w", err)
	}
	_, err = s.out.Write(text)
	return err //nolint:wrapcheck // it names standard output
}

// completeCmd is asked by the scripts of completionCmd.
type completeCmd struct {
	Words []string `arg:"" optional:"" help:"The words behind writ, up to the one that is completed."`
}

// Run prints a line for each way to go on, with a tab before its explanation. It prints nothing where a file or a free
// text is wanted.
func (c *completeCmd) Run(s streams, k *kong.Context) error {
	var lines strings.Builder
	for _, one := range complete(k.Model.Node, c.Words) {
		fmt.Fprintf(&lines, "%s\t%s\n", one.word, one.help)
	}
	_, err := io.WriteString(s.out, lines.String())
	return err
}

type completion struct{ word, help string }

// complete returns the ways to complete the last of words below node.
func complete(node *kong.Node, words []string) (all []completion) {
	if len(words) == 0 {
		return nil
	}
	last := len(words) - 1
	place, wanted := 0, (*kong.Value)(nil) // how many arguments there are, and the flag whose value comes next
	for _, word := range words[:last] {
		switch {
		case word == "=": // bash makes three words of --flag=value
		case wanted != nil:
			wanted = nil
		case strings.HasPrefix(word, "-"):
			wanted = valueAfter(node, word)
		case childOf(node, word) != nil:
			node = childOf(node, word)
		default:
			place++
		}
	}
	add := func(word, help string) {
		if help, _, _ = strings.Cut(help, "\n"); strings.HasPrefix(word, words[last]) {
			all = append(all, completion{word, help})
		}
	}
	name, _, assigned := strings.Cut(words[last], "=")
	switch {
	case wanted != nil:
		if words[last] == "=" {
			words[last] = ""
		}
		for _, value := range valuesOf(wanted) {
			add(value, "")
		}
	case assigned && strings.HasPrefix(name, "--"):
		if wanted = valueAfter(node, name); wanted == nil {
			break
		}
		for _, value := range valuesOf(wanted) {
			add(name+"="+value, "")
		}
	case strings.HasPrefix(words[last], "-"):
		for _, group := range node.AllFlags(true) {
			for _, flag := range group {
				add("--"+flag.Name, flag.Help)
			}
		}
	default:
		for _, child := range node.Children {
			if !child.Hidden {
				add(child.Name, child.Help)
			}
		}
		if place < len(node.Positional) {
			for _, value := range valuesOf(node.Positional[place]) {
				add(value, "")
			}
		}
	}
	return all
}

// childOf returns the verb of that name directly below node, or nil.
func childOf(node *kong.Node, name string) *kong.Node {
	for _, child := range node.Children {
		if child.Name == name {
			return child
		}
	}
	return nil
}

// valueAfter returns the flag that word names if a word with its value comes next, otherwise nil.
func valueAfter(node *kong.Node, word string) *kong.Value {
	for _, group := range node.AllFlags(false) {
		for _, flag := range group {
			if (word == "--"+flag.Name || flag.Short != 0 && word == "-"+string(flag.Short)) && !flag.IsBool() {
				return flag.Value
			}
		}
	}
	return nil
}

// valuesOf returns the values that v is restricted to, if it is.
func valuesOf(v *kong.Value) []string {
	if v.Enum == "" {
		return nil
	}
	return v.EnumSlice()
}
