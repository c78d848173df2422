package remote_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"writ.example/writ/cmd/remote"
)

var profiles = remote.Profiles{
	{Name: "stage", URL: "https://stage.example", Key: "s"},
	{Name: "default", URL: "https://writ.example", Key: "w"},
	{Name: "second", URL: "https://writ.example", Key: "w2"},
}

// TestProfiles_Pick holds that a key is picked for its own server alone.
func TestProfiles_Pick(t *testing.T) {
	for _, c := range []struct{ name, url, want, wrong string }{
		{"", "", "stage", ""},
		{"default", "", "default", ""},
		{"", "https://writ.example", "default", ""},
		{"second", "https://writ.example", "second", ""},
		{"", "https://writ.example.evil.example", "", "want a credential of https://writ.example.evil.example"},
		{"", "http://writ.example", "", "want a credential of http://writ.example"},
		{"default", "https://stage.example", "", "its key goes to no other server"},
		{"stgae", "", "", "there is no profile stgae: did you mean stage?"},
		{"nothing", "", "", "there is no profile nothing"},
	} {
		p, err := profiles.Pick(c.name, c.url)
		if p.Name != c.want || (err == nil) != (c.wrong == "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("Pick(%q, %q) = %+v, %v, want %q %q", c.name, c.url, p, err, c.want, c.wrong)
		}
	}
}

// TestProfiles_With holds that a name stays with its server.
func TestProfiles_With(t *testing.T) {
	if _, err := profiles.With(remote.Profile{Name: "stage", URL: "https://evil.example", Key: "k"}); err == nil {
		t.Error("the profile of a server was given to another one")
	}
	all, err := profiles.With(remote.Profile{Name: "second", URL: "https://writ.example", Key: "new"})
	if err != nil || len(all) != 3 || all[0].Key != "new" || profiles[2].Key != "w2" {
		t.Errorf("With = %+v, %v, want the new one first, and the old ones unchanged", all, err)
	}
}

func TestProfiles_File(t *testing.T) {
	name := filepath.Join(t.TempDir(), "writ", "profiles.json")
	if all, err := remote.LoadProfiles(name); len(all) != 0 || err != nil {
		t.Errorf("no file = %v, %v, want no profiles", all, err)
	}
	for range 2 {
		if err := profiles.Save(name); err != nil {
			t.Fatal(err)
		}
	}
	all, err := remote.LoadProfiles(name)
	if err != nil || len(all) != 3 || all[1] != profiles[1] {
		t.Errorf("loaded %+v, %v", all, err)
	}
	if entries, err := os.ReadDir(filepath.Dir(name)); err != nil || len(entries) != 1 {
		t.Errorf("the directory has %v, %v, want the file alone", entries, err)
	}
	for _, mode := range []os.FileMode{0o640, 0o604, 0o620} {
		if err := os.Chmod(name, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := remote.LoadProfiles(name); err == nil {
			t.Errorf("a file with the mode %o was read", mode)
		}
	}
	for _, text := range []string{"", "{", `{}`, `[{"nme":"x"}]`, `[1]`} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(name, 0o600); err != nil {
			t.Fatal(err)
		}
		if all, err := remote.LoadProfiles(name); err == nil {
			t.Errorf("%q = %v, want an error", text, all)
		}
	}
}

func TestServerURL(t *testing.T) {
	for text, want := range map[string]string{
		"http://localhost:3820":         "http://localhost:3820",
		"HTTPS://Writ.Example/":         "https://writ.example",
		"https://writ.example/base/":    "https://writ.example/base",
		"https://user@writ.example":     "",
		"https://writ.example?x":        "",
		"https://writ.example#x":        "",
		"ftp://writ.example":            "",
		"writ.example":                  "",
		"":                              "",
		"https://writ.example\x1b[31m/": "",
	} {
		if got, err := remote.ServerURL(text); got != want || (err == nil) != (want != "") {
			t.Errorf("ServerURL(%q) = %q, %v, want %q", text, got, err, want)
		}
	}
}
