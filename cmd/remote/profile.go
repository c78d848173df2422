package remote

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"writ.example/writ/storage/datadir"
)

// Profile is a server and the credential that it gets. No other server gets the credential.
type Profile struct {
	Name string `json:"name"`
	URL  string `json:"url"`
	Key  string `json:"key"`
}

// Profiles are the profiles of a user. The last one to log in is the first. They are stored as a JSON array
// in a file that the user alone can read.
type Profiles []Profile

// ProfilesFile returns the name of the user's file of profiles.
func ProfilesFile() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("finding the profiles: %w", err)
	}
	return filepath.Join(dir, "writ", "profiles.json"), nil
}

// LoadProfiles reads a file of profiles. Without the file there is no profile. It refuses a file that
// others can read.
func LoadProfiles(name string) (all Profiles, err error) {
	info, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the profiles: %w", err)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return nil, fmt.Errorf("%s has the mode %04o, so others can read the keys in it: chmod 600 it, and "+
			"revoke the keys if somebody has", name, mode)
	}
	data, err := os.ReadFile(name)
	if err == nil {
		err = json.Unmarshal(data, &all, json.RejectUnknownMembers(true))
	}
	if err != nil {
		return nil, fmt.Errorf("reading the profiles: %s: %w", name, err)
	}
	return all, nil
}

// Save writes the profiles to a file, as a whole or not at all.
func (all Profiles) Save(name string) error {
	data, err := json.Marshal(all, jsontext.WithIndent("  "))
	if err == nil {
		err = os.MkdirAll(filepath.Dir(name), 0o700)
	}
	if err == nil {
		err = datadir.WriteFile(name, append(data, '\n'), os.Rename)
	}
	if err != nil {
		return fmt.Errorf("writing the profiles: %w", err)
	}
	return nil
}

// With returns the profiles with p first. It refuses to give the name of a profile to another server.
func (all Profiles) With(p Profile) (Profiles, error) {
	i := all.index(p.Name)
	if i >= 0 && all[i].URL != p.URL {
		return nil, fmt.Errorf("the profile %s is of %s: name another one with --profile, or remove it with "+
			"writ logout --profile %[1]s", p.Name, all[i].URL)
	}
	return slices.Insert(all.Without(p.Name), 0, p), nil
}

// Without returns the profiles but for the one with that name.
func (all Profiles) Without(name string) Profiles {
	return slices.DeleteFunc(slices.Clone(all), func(p Profile) bool { return p.Name == name })
}

func (all Profiles) index(name string) int {
	return slices.IndexFunc(all, func(p Profile) bool { return p.Name == name })
}

// Has reports whether there is a profile of a server.
func (all Profiles) Has(server string) bool {
	return slices.ContainsFunc(all, func(p Profile) bool { return p.URL == server })
}

// Pick returns the profile with that name, or the last one of that server. Empty texts pick the first. An
// error names the flag to give, or the profile that was probably meant.
func (all Profiles) Pick(name, server string) (Profile, error) {
	switch i := all.index(name); {
	case name != "" && i < 0:
		names := make([]string, len(all))
		for i, p := range all {
			names[i] = p.Name
		}
		if meant := Meant(name, names); meant != "" || len(names) == 0 {
			return Profile{}, fmt.Errorf("there is no profile %s%s", name, meant)
		}
		return Profile{}, fmt.Errorf("there is no profile %s: there are %s", name, strings.Join(names, ", "))
	case name != "" && server != "" && all[i].URL != server:
		return Profile{}, fmt.Errorf("the profile %s is of %s, and its key goes to no other server: not to %s",
			name, all[i].URL, server)
	case name != "":
		return all[i], nil
	}
	for _, p := range all {
		if server == "" || p.URL == server {
			return p, nil
		}
	}
	if server == "" {
		return Profile{}, errors.New("want --url URL (or the variable WRIT_URL), or writ login")
	}
	return Profile{}, fmt.Errorf("want a credential of %s: in WRIT_API_KEY, or by writ login", server)
}

// Meant returns ": did you mean …?" if one of the names is nearly name, or nothing.
func Meant(name string, names []string) string {
	const edits = 3
	best, at := "", min(edits, len(name)/2)+1
	for _, n := range names {
		if d := levenshtein.ComputeDistance(name, n); d < at {
			best, at = n, d
		}
	}
	if best == "" {
		return ""
	}
	return ": did you mean " + best + "?"
}

// ServerURL returns the address of a server in the one form in which profiles are compared.
func ServerURL(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil ||
		u.RawQuery != "" || u.Fragment != "" {
		return "", errors.New("--url: want an address such as http://localhost:3820")
	}
	return u.Scheme + "://" + strings.ToLower(u.Host) + strings.TrimRight(u.EscapedPath(), "/"), nil
}

// CheckKey returns an error if a user has typed a text that is no credential.
func CheckKey(key string) error {
	switch {
	case key == "":
		return errors.New("the key is missing: type it, or pipe it into standard input")
	case strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }):
		return errors.New("the key has a character that no key has: want one line, an API key or an operator token")
	}
	return nil
}
