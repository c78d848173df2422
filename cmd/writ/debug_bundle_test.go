package main

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// TestShownSetting_NoSecret sets each text of serve to a secret. A bundle shows it of paths and of plainSettings alone.
func TestShownSetting_NoSecret(t *testing.T) {
	parser, _, err := serveAlone()
	must(t, err)
	texts := 0
	for _, f := range parser.Model.Children[0].Flags {
		value := reflect.New(f.Target.Type()).Elem()
		if value.Kind() != reflect.String || f.Enum != "" {
			continue
		}
		texts++
		for _, secret := range []string{"canary", "https://user:canary@host/canary?canary=canary#canary", "redis://canary@host"} {
			value.SetString(secret)
			shown := fmt.Sprint(shownSetting(f, value.Interface()))
			path := f.PlaceHolder == "FILE" || f.PlaceHolder == "DIR" || f.Name == "data"
			if strings.Contains(shown, "canary") && !path && !plainSettings[f.Name] {
				t.Errorf("--%s of %s is shown as %s", f.Name, secret, shown)
			}
		}
	}
	if texts < 20 {
		t.Errorf("serve has %d texts: the test shows nothing", texts)
	}
	for name := range plainSettings {
		for _, word := range []string{"token", "key", "secret", "password", "uri"} {
			if strings.Contains(name, word) {
				t.Errorf("%s may have a secret", name)
			}
		}
	}
}

func TestLastLines(t *testing.T) {
	var l lastLines
	for i := range keptLines + 3 {
		fmt.Fprintf(&l, "line %d\n", i)
	}
	fmt.Fprint(&l, strings.Repeat("x", 2*keptLine)+"\n")
	lines := strings.Split(strings.TrimSuffix(string(l.text()), "\n"), "\n")
	if len(lines) != keptLines || lines[0] != "line 4" || lines[keptLines-2] != fmt.Sprintf("line %d", keptLines+2) ||
		len(lines[keptLines-1]) > keptLine+len("…") {
		t.Errorf("%d lines from %q to %.20q…", len(lines), lines[0], lines[len(lines)-1])
	}
}
