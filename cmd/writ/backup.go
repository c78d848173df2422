package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"writ.example/writ/internal/telemetry"
	"writ.example/writ/storage/backup"
	"writ.example/writ/storage/datadir"
	"writ.example/writ/storage/embedded"
)

// backupIn returns a function that makes backups in --backup-dir, or nil without that flag.
func (n *node) backupIn(c *serveCmd) func(ctx context.Context, name string) (string, error) {
	source, ok := n.store.(backup.Source)
	if c.BackupDir == "" || !ok {
		return nil
	}
	files := map[string]string{"keys.jwks": c.Data.JWKS()}
	if c.BackupKeys {
		if !datadir.IsSigner(c.SigningKey) { // a signer does not give its keys away
			files["signing-key.pem"] = cmp.Or(c.SigningKey, c.Data.SigningKey())
		}
		files["operator-secret"] = cmp.Or(c.OperatorSecret, c.Data.OperatorSecret())
		files["scrub-key"] = cmp.Or(c.ScrubKey, c.Data.ScrubKey())
	}
	total := telemetry.CounterVec("writ_backups_total",
		"Backups that were asked for, by whether they were made.", "result")
	last := prometheus.NewGauge(prometheus.GaugeOpts{Name: "writ_backup_last_timestamp_seconds",
		Help: "When the last backup since the start was made, in seconds since 1970; 0 before."})
	n.registry.MustRegister(total, last)
	for _, result := range []string{"ok", "failed"} {
		total.WithLabelValues(result)
	}
	var one sync.Mutex
	return func(ctx context.Context, name string) (string, error) {
		if !one.TryLock() {
			return "", errors.New("another backup is being made")
		}
		defer one.Unlock()
		begin := time.Now()
		m, err := backup.Make(ctx, backup.Config{Source: source, Dir: c.BackupDir, Files: files, Now: time.Now}, name)
		if err != nil {
			total.WithLabelValues("failed").Inc()
			n.log.Error("no backup was made", "name", name, "problem", err)
			return "", err
		}
		total.WithLabelValues("ok").Inc()
		last.SetToCurrentTime()
		said := fmt.Sprintf("backup %s ends at head %d, change %d: %d files, %v", name, m.Head, m.Change, len(m.Files),
			time.Since(begin).Round(time.Millisecond))
		n.log.Info(said)
		return said, nil
	}
}

type backupCmd struct {
	Name string `arg:"" help:"Name of the backup, such as 2026-11-28. It is a directory below the server's --backup-dir."`

	adminFlags `embed:""`
}

func (c *backupCmd) Help() string {
	return `The server copies its store while it serves, and the verb ends when the copy is durable.
It links the files that do not change, if --backup-dir is on the file system of --data.
Secrets are not in it, unless the server was started with --backup-keys.

  writ serve --data ./data --backup-dir ./backups
  writ backup 2026-11-28
  writ restore ./backups/2026-11-28 --data ./restored`
}

func (c *backupCmd) Run(ctx context.Context, s streams) error {
	if err := backup.CheckName(c.Name); err != nil {
		return &usageError{err.Error()}
	}
	said, err := askAdmin(ctx, c.AdminURL, http.MethodPost, "/backup/"+url.PathEscape(c.Name),
		"the server makes no backups: start it with --backup-dir")
	if err != nil {
		return err
	}
	_, err = io.Copy(s.out, said)
	return errors.Join(err, said.Close())
}

type restoreCmd struct {
	Backup         string      `arg:"" help:"Directory of the backup."`
	Data           datadir.Dir `required:"" placeholder:"DIR" help:"Data directory without a store. Keys that it has stay."`
	Tip            string      `placeholder:"FILE" help:"The store.tip of the lost data directory: a backup that ends before it is refused."`
	AcceptRollback *uint64     `placeholder:"SEQ" env:"-" help:"Restore a backup that ends at head SEQ, although a later head is known."`
}

func (c *restoreCmd) Help() string {
	return `Copies a backup into a data directory and compares each file with its SHA-256. It is
refused where a later head is known: from --tip, from a store.tip that the data directory
still has, or from another backup beside this one.

  writ restore ./backups/2026-11-28 --data ./restored
  writ verify --chain --data ./restored`
}

func (c *restoreCmd) Run(ctx context.Context, s streams) error {
	r := backup.Restored{Data: c.Data, Accept: c.AcceptRollback}
	if c.Tip != "" {
		text, err := os.ReadFile(c.Tip)
		if err != nil {
			return err
		}
		tip, err := embedded.ParseTip(text)
		if err != nil {
			return &inputError{name: c.Tip, err: err}
		}
		r.Tip = &tip
	}
	m, err := backup.Restore(ctx, filepath.Clean(c.Backup), r)
	if err != nil {
		return err
	}
	fmt.Fprintf(s.out, "%s: restored to head %d, change %d, of %s; prove it: writ verify --chain --data %s\n", c.Data,
		m.Head, m.Change, m.Time.Format(time.RFC3339), c.Data)
	return nil
}
