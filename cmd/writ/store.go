package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/prometheus/client_golang/prometheus"

	"writ.example/writ/api"
	"writ.example/writ/storage"
	"writ.example/writ/storage/datadir"
	"writ.example/writ/storage/embedded"
	"writ.example/writ/storage/mongodb"
)

type storeFlags struct {
	Store   string `default:"embedded" enum:"embedded,mongodb" help:"Where documents and history are: embedded in the data directory, for one process, or in mongodb, which any number of replicas share."`
	MongoDB struct {
		URI      string `name:"uri" placeholder:"URI" help:"Replica set of the store mongodb. Prefer the variable: a flag shows in the list of processes."`
		Database string `default:"writ" help:"Database of the store mongodb, which must be writ's own."`
	} `embed:"" prefix:"mongodb-"`
	Replica string `placeholder:"NAME" help:"Name of this process in the rows that it decides. Default: with the store mongodb the host's."`
}

// checkURI refuses a URI without --store mongodb, and --store mongodb without a URI.
func (f *storeFlags) checkURI() error {
	switch mongo := f.Store == "mongodb"; {
	case mongo && f.MongoDB.URI == "":
		return errors.New("--store mongodb needs --mongodb-uri, such as mongodb://db1,db2,db3/?replicaSet=rs")
	case !mongo && f.MongoDB.URI != "":
		return errors.New("--mongodb-uri is for --store mongodb")
	}
	return nil
}

func (f *storeFlags) open(
	ctx context.Context, data datadir.Dir, e embedded.Options, m mongodb.Options,
) (storage.Store, error) {
	if f.Store == "mongodb" {
		m.URI, m.Database = f.MongoDB.URI, f.MongoDB.Database
		s, err := mongodb.Open(ctx, m)
		if err != nil {
			return nil, err // a nil *mongodb.Store in an interface is not nil
		}
		return s, nil
	}
	if bar := newProgress(os.Stderr); bar.shown {
		e.Progress = func(step string, done, of uint64) {
			if step == "" {
				bar.end()
				return
			}
			bar.show(step, int(done), int(of))
		}
	}
	s, err := embedded.Open(data.Store(), e)
	if err != nil {
		return nil, err // a nil *embedded.Store in an interface is not nil
	}
	return s, nil
}

// openReader opens the store that the flags name, only for reading.
func (f *storeFlags) openReader(ctx context.Context, data datadir.Dir) (wholeHistory, error) {
	if f.Store == "mongodb" {
		return mongodb.OpenSnapshot(ctx, mongodb.Options{URI: f.MongoDB.URI, Database: f.MongoDB.Database})
	}
	return embedded.OpenReadOnly(data.Store(), embedded.Options{})
}

// shareKeys tells a store that replicas share which keys this process has. The store refuses keys of another
// deployment.
func (c *serveCmd) shareKeys(ctx context.Context, s storage.Store, secret []byte) error {
	shared, ok := s.(*mongodb.Store)
	if !ok {
		return nil
	}
	scrub, err := c.Data.ScrubKeys(c.ScrubKey)
	if err != nil {
		return err
	}
	me := mongodb.Replica{Version: readBuilt().String()}
	if me.Name, err = c.writer(); err != nil {
		return err
	}
	return shared.ShareKeys(ctx, me, secret, scrub)
}

// writer returns the name that this process has in the history.
func (c *serveCmd) writer() (string, error) {
	if c.Replica != "" || c.Store == "embedded" {
		return c.Replica, nil
	}
	name, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("naming this replica: %w: give --replica", err)
	}
	return name, nil
}

// checkStore refuses flags of one store together with the other store.
func (c *serveCmd) checkStore() error {
	if err := c.checkURI(); err != nil {
		return err
	}
	switch mongo := c.Store == "mongodb"; {
	case mongo && c.AuditAck.behind() > 0:
		return errors.New("--audit-ack queued is for --store embedded: mongodb answers when a majority has a decision")
	case mongo && c.BackupDir != "":
		return errors.New("--backup-dir is for --store embedded: back up MongoDB with its own tools")
	case c.BackupKeys && c.BackupDir == "":
		return errors.New("--backup-keys wants --backup-dir")
	case mongo && c.AcceptRollback != nil:
		return errors.New("--accept-rollback is for --store embedded")
	}
	return nil
}

// freeze returns the state of a store, for exports.
func (n *node) freeze(ctx context.Context) (api.Frozen, error) {
	switch s := n.store.(type) {
	case *embedded.Store:
		return s.Freeze(ctx)
	case *mongodb.Store:
		return s.Freeze(ctx)
	}
	return nil, fmt.Errorf("a store of the type %T exports nothing", n.store)
}

// openStore opens the store of the deployment. No other function of serve knows which store it
// is. lost is called when this process cannot use the store any more.
func (c *serveCmd) openStore(
	ctx context.Context, log *slog.Logger, metrics prometheus.Registerer, lost func(error),
) (storage.Store, error) {
	return c.open(ctx, c.Data, embedded.Options{
		WriteBehind: c.AuditAck.behind(), AcceptRollback: c.AcceptRollback, Log: log, Metrics: metrics,
	}, mongodb.Options{Lost: lost, Log: log, Metrics: metrics})
}
