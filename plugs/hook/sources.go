package hook

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"writ.example/writ/internal/toolcall"
	"writ.example/writ/plugs/plug"
	writ "writ.example/writ/sdk/go"
)

// Bounds of a session on disk, the same as in [writ.Provenance].
const (
	maxWords   = 64 << 10
	maxResults = 4 << 20
)

// session has the files of a harness's session in which sources are kept:
//
//	sources-ID-TIME-RANDOM.words   what the user said
//	sources-ID-TIME-RANDOM.result  what a call returned
//	sources-ID-dropped             something was not kept
//	sources-ID-call-CALL           what was stated of a call
type session struct {
	st     state
	prefix string
}

func (st state) sources(harness toolcall.Harness, id string) session {
	return session{st, "sources-" + sessionDigest(harness, id) + "-"}
}

const (
	wordsFile  = ".words"
	resultFile = ".result"
	dropped    = "dropped"
)

// result is what a call returned.
type result struct {
	Tool   string `json:"tool"`
	Place  string `json:"place,omitempty"`
	CWD    string `json:"cwd,omitempty"`
	Values []any  `json:"values"`
}

// files returns the names of the session's files of a kind, the oldest first, and how many bytes they have.
func (s session) files(kinds ...string) (names []string, bytes int, err error) {
	entries, err := os.ReadDir(string(s.st.State)) // sorted by name
	if err != nil {
		return nil, 0, fmt.Errorf("--state: %w", err)
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), s.prefix) || len(kinds) > 0 && !slices.Contains(kinds, filepath.Ext(e.Name())) {
			continue
		}
		names = append(names, e.Name())
		if info, err := e.Info(); err == nil { // else it was dropped meanwhile
			bytes += int(info.Size())
		}
	}
	return names, bytes, nil
}

func (s session) put(kind string, data []byte, now time.Time) error {
	return s.st.Put(fmt.Sprintf("%s%020d-%s%s", s.prefix, now.UnixNano(), rand.Text(), kind), data, false)
}

func (s session) drop() error { return s.st.Put(s.prefix+dropped, nil, true) }

// addWords keeps words of the user. They are never dropped, so those that find no room are not kept.
func (s session) addWords(text string, now time.Time) error {
	_, kept, err := s.files(wordsFile)
	if err != nil {
		return err
	}
	if kept+len(text) > maxWords {
		return s.drop()
	}
	return s.put(wordsFile, []byte(text), now)
}

// addResult keeps the result of a call, and drops the oldest results if there are too many.
func (s session) addResult(r result, now time.Time) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if len(data) > maxResults {
		return s.drop()
	}
	if err := s.put(resultFile, data, now); err != nil {
		return err
	}
	names, kept, err := s.files(resultFile)
	if err != nil || kept <= maxResults {
		return err
	}
	if err := s.drop(); err != nil {
		return err
	}
	for _, name := range names {
		info, err := os.Stat(s.st.Path(name))
		if err == nil {
			kept -= int(info.Size())
		}
		if err := s.st.Remove(name); err != nil || kept <= maxResults {
			return err
		}
	}
	return nil
}

// provenance returns the words and results of the session, and whether some were dropped.
func (s session) provenance(records *plug.Sources) (*writ.Provenance, bool, error) {
	p, words := records.Provenance(), new(writ.Provenance)
	names, _, err := s.files(wordsFile, resultFile)
	if err != nil {
		return nil, false, err
	}
	_, err = os.Stat(s.st.Path(s.prefix + dropped))
	lost := !errors.Is(err, fs.ErrNotExist)
	for _, name := range names {
		data, err := plug.ReadFile(s.st.Path(name))
		switch {
		case errors.Is(err, fs.ErrNotExist): // another process has dropped it
			lost = true
			continue
		case err != nil:
			return nil, false, fmt.Errorf("--state: %w", err)
		case strings.HasSuffix(name, wordsFile):
			p.User(string(data))
			words.User(string(data))
			continue
		}
		var r result
		d := json.NewDecoder(bytes.NewReader(data))
		d.UseNumber()
		err = d.Decode(&r)
		if _, end := d.Token(); err != nil || !errors.Is(end, io.EOF) {
			return nil, false, fmt.Errorf("--state: %s is damaged: remove it", s.st.Path(name))
		}
		place, err := r.namedPlace(words)
		if err != nil {
			return nil, false, err
		}
		for _, v := range r.Values {
			if err := p.Result(r.Tool, v, place); err != nil {
				return nil, false, err
			}
		}
	}
	return p, lost, nil
}

// namedPlace returns the place of a result as the user's words say it: from the working directory, or in full.
func (r result) namedPlace(words *writ.Provenance) (string, error) {
	from, err := filepath.Rel(r.CWD, r.Place)
	inside := r.CWD != "" && r.Place != "" && err == nil && filepath.IsLocal(from)
	if !inside {
		return r.Place, nil
	}
	facts, err := words.Facts(map[string]any{"": from})
	if facts[writ.SourceFact] == string(writ.SourceUser) {
		return from, err
	}
	return r.Place, err
}

// keep keeps the user's words, or the result of a call.
func (h *Hook) keep(data []byte) (answer, error) {
	said, err := toolcall.ParseSaid(h.Harness, data)
	if err != nil {
		return answer{}, err
	}
	st, err := openState(h.State, h.now())
	if err != nil {
		return answer{}, err
	}
	s := st.sources(h.Harness, said.Session)
	if said.Call == nil {
		return answer{out: "{}\n"}, s.addWords(said.Words, h.now())
	}
	r := result{Tool: said.Call.Tool, CWD: said.Call.CWD}
	if said.Call.Failed() {
		r.Tool = "" // what is said of a failure is no record
	}
	if intents, err := h.plug.Mapping.Intents(*said.Call, writ.Intent{}); err == nil { // else it has no place
		r.Place = plug.Place(*said.Call, intents)
	}
	for _, v := range said.Results {
		r.Values = append(r.Values, json.RawMessage(v)) // Marshal writes it as it is
	}
	if len(r.Values) == 0 {
		return answer{out: "{}\n"}, nil
	}
	return answer{out: "{}\n"}, s.addResult(r, h.now())
}

// stateSources states where the arguments of a call come from. A value that stands nowhere is unknown, because
// harnesses do not hand every result to hooks. A call that is asked about again gets what was stated at first:
// anything else would be another intent.
func (h *Hook) stateSources(st state, call *toolcall.Call) error {
	if call.Session == "" {
		return errors.New("session_id: is missing: --sources wants it")
	}
	s := st.sources(call.Harness, call.Session)
	name := s.prefix + callName(*call, h.plug.Key(*call, ""))
	if call.ID != "" {
		if data, err := plug.ReadFile(st.Path(name)); err == nil {
			if json.Unmarshal(data, &call.Sources) != nil {
				return fmt.Errorf("--state: %s is damaged: remove it", st.Path(name))
			}
			return nil
		}
	}
	p, dropped, err := s.provenance(h.plug.Mapping.Sources)
	if err != nil {
		return err
	}
	lost := []writ.Source{writ.SourceModel}
	if dropped {
		lost = append(lost, writ.SourceText, writ.SourceNamed)
	}
	if err := plug.StateSources(p, call, lost...); err != nil || call.ID == "" {
		return err
	}
	data, err := json.Marshal(call.Sources)
	if err != nil {
		return err
	}
	return st.Put(name, data, true)
}

// forget erases what is kept of a session that has ended.
func (h *Hook) forget(data []byte) error {
	id, err := toolcall.ParseEnd(h.Harness, data)
	if err != nil {
		return err
	}
	st, err := openState(h.State, h.now())
	if err != nil {
		return err
	}
	names, _, err := st.sources(h.Harness, id).files()
	for _, name := range names {
		err = cmp.Or(err, st.Remove(name))
	}
	return err
}
