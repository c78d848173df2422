package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v3"
)

// configFlag names a YAML file with settings of the verb, by the names of their flags. A flag goes before a variable,
// and a variable before the file.
type configFlag string

// notInConfig are flags of one start, not of a deployment.
var notInConfig = map[string]bool{"config": true, "accept-rollback": true, "demo": true, "help": true, "version": true}

// BeforeResolve reads the file.
func (configFlag) BeforeResolve(k *kong.Context, trace *kong.Path) error {
	verb := k.Selected()
	name, _ := k.FlagValue(trace.Flag).(configFlag)
	if name == "" || verb == nil || verb.Name != "serve" {
		return nil // a variable that is meant for the server
	}
	settings, err := readConfig(string(name), settingsOf(verb))
	if err != nil {
		return err
	}
	k.AddResolver(kong.ResolverFunc(func(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
		for _, variable := range flag.Envs {
			if _, set := os.LookupEnv(variable); set {
				return nil, nil
			}
		}
		if value, ok := settings[flag.Name]; ok {
			return value, nil
		}
		return nil, nil
	}))
	return nil
}

// settingsOf returns the flags of a verb that a file can set, by each of their names.
func settingsOf(verb *kong.Node) map[string]*kong.Flag {
	flags := make(map[string]*kong.Flag)
	for _, f := range verb.Flags {
		if notInConfig[f.Name] {
			continue
		}
		for _, name := range append(f.Aliases, f.Name) {
			flags[name] = f
		}
	}
	return flags
}

// readConfig returns the settings in a file as texts. A list is a text with commas.
func readConfig(name string, flags map[string]*kong.Flag) (map[string]string, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("--config: %w", err)
	}
	refuse := func(line int, format string, args ...any) error {
		return &usageError{fmt.Sprintf("%s:%d: %s", name, line, fmt.Sprintf(format, args...))}
	}
	var file, more yaml.Node
	settings := make(map[string]string)
	documents := yaml.NewDecoder(bytes.NewReader(data))
	err = documents.Decode(&file)
	if errors.Is(err, io.EOF) {
		return settings, nil
	}
	if err == nil && !errors.Is(documents.Decode(&more), io.EOF) {
		err = errors.New("want one YAML document")
	}
	if err != nil {
		return nil, &usageError{name + ": " + strings.TrimPrefix(err.Error(), "yaml: ")}
	}
	top := file.Content[0]
	if top.Kind != yaml.MappingNode {
		return nil, refuse(top.Line, "want settings, one a line, such as addr: 127.0.0.1:3820")
	}
	for i := 0; i < len(top.Content); i += 2 {
		key, value := top.Content[i], top.Content[i+1]
		flag := flags[key.Value]
		if flag == nil {
			return nil, refuse(key.Line, "there is no setting %q%s", key.Value, meantSetting(key.Value, flags))
		}
		if _, twice := settings[flag.Name]; twice {
			return nil, refuse(key.Line, "%s is set twice", key.Value)
		}
		text, ok := settingText(value, flag)
		if !ok {
			return nil, refuse(value.Line, "%s: want %s", key.Value, settingKind(flag))
		}
		settings[flag.Name] = text
	}
	return settings, nil
}

// settingText returns a value as it would stand on a command line.
func settingText(v *yaml.Node, f *kong.Flag) (string, bool) {
	switch {
	case v.Kind == yaml.ScalarNode && v.Tag != "!!null":
		return v.Value, true
	case v.Kind == yaml.SequenceNode && f.IsSlice():
		var all []string
		for _, one := range v.Content {
			if one.Kind != yaml.ScalarNode || one.Tag == "!!null" || strings.Contains(one.Value, ",") {
				return "", false
			}
			all = append(all, one.Value)
		}
		return strings.Join(all, ","), true
	}
	return "", false
}

func settingKind(f *kong.Flag) string {
	if f.IsSlice() {
		return "a text or a list of texts without commas"
	}
	return "one value, such as a text or a number"
}

// meantSetting asks for the setting that a name misspells.
func meantSetting(name string, flags map[string]*kong.Flag) string {
	var names []string
	for known := range flags {
		names = append(names, envPrefix+known)
	}
	slices.Sort(names)
	name = strings.ReplaceAll(strings.ToLower(strings.TrimLeft(name, "-")), "_", "-")
	if meant := nearest(envPrefix+name, names); meant != "" {
		return fmt.Sprintf(": did you mean %s?", strings.TrimPrefix(meant, envPrefix))
	}
	return ": writ serve --help has them, without --"
}

type configCmd struct {
	Check configCheckCmd `cmd:"" help:"Check a file of settings as a start would, without a start."`
}

type configCheckCmd struct {
	File string `arg:"" help:"The file."`
}

func (c *configCheckCmd) Help() string {
	return `Reads the file as writ serve --config would, with no variable set, and the files that it
names: plans and certificates. Nothing is opened, and no address is taken.

  writ schema config prints the JSON Schema of such files, for editors.`
}

func (c *configCheckCmd) Run(_ context.Context, s streams) error {
	serve, settings, err := serveOf(c.File)
	if err != nil {
		return err
	}
	if err := serve.checkFiles(); err != nil {
		return err
	}
	fmt.Fprintf(s.out, "%s: ok: %d settings\n", c.File, settings)
	return nil
}

// checkFiles reads the files that the settings name: plans and certificates.
func (c *serveCmd) checkFiles() error {
	if _, err := plansIn(c.Plans); err != nil {
		return err
	}
	_, err := c.TLS.open()
	return err
}

// serveOf returns the command that a file alone sets, and how many settings it has.
func serveOf(file string) (c *serveCmd, settings int, err error) {
	parser, c, err := serveAlone()
	if err != nil {
		return nil, 0, err
	}
	k, err := parser.Parse([]string{"serve", "--config", file})
	if err != nil {
		return nil, 0, &usageError{err.Error()}
	}
	for _, set := range k.Path {
		if set.Resolved {
			settings++
		}
	}
	return c, settings, nil
}

// serveAlone returns a parser of the verb serve that ignores the environment, and the command that it fills in.
func serveAlone() (*kong.Kong, *serveCmd, error) {
	var verbs struct {
		Serve serveCmd `cmd:""`
	}
	parser, err := kong.New(&verbs, kong.Writers(io.Discard, io.Discard), kong.PostBuild(withoutVariables))
	if err != nil {
		return nil, nil, fmt.Errorf("reading the flags: %w", err)
	}
	return parser, &verbs.Serve, nil
}

// withoutVariables makes the flags ignore the environment.
func withoutVariables(k *kong.Kong) error {
	for _, flags := range k.Model.AllFlags(false) {
		for _, f := range flags {
			f.Tag.Envs, f.Envs = nil, nil
		}
	}
	return nil
}

// configSchema returns the JSON Schema of files of settings.
func configSchema() ([]byte, error) {
	parser, _, err := serveAlone()
	if err != nil {
		return nil, err
	}
	properties := make(object)
	for name, f := range settingsOf(parser.Model.Children[0]) {
		p := object{"description": f.Help}
		switch {
		case f.IsBool():
			p["type"] = "boolean"
		case f.IsSlice():
			p["type"] = []string{"string", "array"}
			p["items"] = object{"type": "string"}
		default:
			p["type"] = []string{"string", "number"}
		}
		if f.Enum != "" {
			p["enum"] = f.EnumSlice()
		}
		if f.Default != "" {
			p["default"] = f.Default
		}
		properties[name] = p
	}
	text, err := json.Marshal(object{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "writ: config",
		"type": "object", "additionalProperties": false, "properties": properties,
	}, json.Deterministic(true), jsontext.WithIndent("  "))
	return append(text, '\n'), err
}
