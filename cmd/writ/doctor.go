package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"writ.example/writ/cmd/remote"
	"writ.example/writ/internal/printable"
	"writ.example/writ/internal/tlsfiles"
	"writ.example/writ/storage/datadir"
)

// The states of a finding.
const (
	fine    = "ok"
	warning = "warning"
	failure = "failure"
	unseen  = "not examined"
)

// finding is what the doctor has found, and what to do about it.
type finding struct {
	Check string `json:"check"`
	State string `json:"state"`
	Found string `json:"found"`
	Do    string `json:"do,omitzero"`
}

// found makes a finding without anything to do.
func found(format string, args ...any) finding {
	return finding{State: fine, Found: fmt.Sprintf(format, args...)}
}

// warned makes a finding that is no failure yet.
func warned(do, format string, args ...any) finding {
	return finding{State: warning, Found: fmt.Sprintf(format, args...), Do: do}
}

// failed makes a finding that ends the doctor with exit code 1.
func failed(do, format string, args ...any) finding {
	return finding{State: failure, Found: fmt.Sprintf(format, args...), Do: do}
}

func notExamined(why string) finding { return finding{State: unseen, Found: why} }

// examination is all that the doctor has found. It is the answer of GET /doctor on the admin address.
type examination struct {
	Version string    `json:"version"` // of the server, or of the writ that has looked at a data directory
	Checks  []finding `json:"checks"`
}

type doctorCmd struct {
	serverFlags `embed:""`
	AdminURL    string      `name:"admin-url" placeholder:"URL" help:"Admin address of the server. Default: http://127.0.0.1:3821, unless --url, --profile, --data, --config or --store mongodb says what to look at."`
	Config      string      `placeholder:"FILE" help:"File of the settings of a server that does not run."`
	Data        datadir.Dir `placeholder:"DIR" help:"Data directory of a server that does not run."`
	storeFlags  `embed:""`
	JSON        bool `name:"json" help:"Print a JSON object."`
}

func (c *doctorCmd) Help() string {
	return `Looks at configuration, store, keys, clock, disk, permissions, the versions of replicas, and
at a denial that must deny. Each line says what was found, and the next one what to do. Exits 1
if there is a failure. A warning is none. Nothing is changed.

A server that runs examines itself on its admin address. With --url or --profile its API is
tried as well, or alone. Of a server that does not run the data directory or the database is
read.

  writ doctor
  writ doctor --admin-url http://127.0.0.1:3821 --url http://localhost:3820
  writ doctor --config /etc/writ/writ.yaml
  writ doctor --data ./data`
}

func (c *doctorCmd) Run(ctx context.Context, s streams) error {
	stopped := c.Config != "" || c.Data != "" || c.Store == "mongodb"
	if stopped && c.URL == os.Getenv(envPrefix+"URL") {
		c.URL = "" // the variable is for the other clients
	}
	if stopped && c.AdminURL == os.Getenv(envPrefix+"ADMIN_URL") {
		c.AdminURL = ""
	}
	api := c.URL != "" || c.Profile != ""
	if stopped && (api || c.AdminURL != "") {
		return &usageError{"--config, --data and --store mongodb are of a server that does not run: " +
			"want none of --url, --profile and --admin-url beside them"}
	}
	x := examination{Version: readBuilt().String()}
	var err error
	switch {
	case stopped:
		x.Checks, err = c.stopped(ctx)
	case api && c.AdminURL == "":
		x.Checks = []finding{{Check: "the server", State: unseen,
			Found: "its admin address was not asked: --admin-url names it, on the host of the server"}}
	default:
		x, err = c.running(ctx)
	}
	if err == nil && api {
		var more []finding
		more, err = c.api(ctx, s)
		x.Checks = append(x.Checks, more...)
	}
	if err != nil {
		return err
	}
	return c.print(s, x)
}

func (c *doctorCmd) print(s streams, x examination) error {
	if c.JSON {
		if err := remote.JSON(s.out, x); err != nil {
			return err
		}
	} else {
		for _, f := range x.Checks {
			fmt.Fprintf(s.out, "%-12s  %-13s  %s\n", f.State, f.Check, printable.Text(f.Found))
			if f.Do != "" {
				fmt.Fprintf(s.out, "%-12s  %-13s  do: %s\n", "", "", printable.Text(f.Do))
			}
		}
	}
	if slices.ContainsFunc(x.Checks, func(f finding) bool { return f.State == failure }) {
		return errReported
	}
	return nil
}

// running asks a server for its examination.
func (c *doctorCmd) running(ctx context.Context) (x examination, err error) {
	at := cmp.Or(c.AdminURL, "http://127.0.0.1:3821")
	body, err := askAdmin(ctx, at, http.MethodGet, "/doctor", "it is no admin address of a writ that has a doctor")
	if err != nil {
		f := failed("--data and --config are for a server that does not run", "%v", tlsfiles.Advise(err))
		f.Check = "the server"
		return examination{Checks: []finding{f}}, nil
	}
	text, err := io.ReadAll(io.LimitReader(body, 1<<20))
	if err = errors.Join(err, body.Close()); err != nil {
		return x, err
	}
	if err := json.Unmarshal(text, &x); err != nil {
		return x, &inputError{name: at, err: err}
	}
	if own := readBuilt().String(); x.Version != own {
		x.Checks = append(x.Checks, finding{Check: "versions", State: warning,
			Found: fmt.Sprintf("the server is %s, and this is %s", x.Version, own),
			Do:    "start the server again after an upgrade, or use the same writ"})
	}
	return x, nil
}

// stopped examines the data directory or the database of a server that does not run.
func (c *doctorCmd) stopped(ctx context.Context) ([]finding, error) {
	serve, err := defaultServe()
	if err != nil {
		return nil, err
	}
	e := examiner{c: serve, now: clockNow}
	if c.Config != "" {
		e.c, e.settings, e.configErr = serveOf(c.Config)
		if e.configErr != nil {
			e.c = serve
		}
		e.config = c.Config
	}
	if c.Data != "" {
		e.c.Data = c.Data
	}
	if c.Store == "mongodb" {
		if err := c.checkURI(); err != nil {
			return nil, &usageError{err.Error()}
		}
		e.c.storeFlags = c.storeFlags
	}
	if _, err := os.Stat(e.c.Data.Store()); err == nil || e.c.Store == "mongodb" {
		reader, err := e.c.openReader(ctx, e.c.Data)
		if e.storeErr = err; err == nil {
			e.history = reader
			defer reader.Close()
		}
	} else {
		e.storeErr = err
	}
	return e.all(ctx), nil
}

// examine is the examination of a server that runs.
func (n *node) examine(ctx context.Context, c *serveCmd) examination {
	e := examiner{c: c, node: n, history: n.store, now: clockNow}
	return examination{Version: readBuilt().String(), Checks: e.all(ctx)}
}

// texts joins lines that a finding consists of.
func texts(all []string) string { return strings.Join(all, "; ") }
