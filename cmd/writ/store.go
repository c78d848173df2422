package main

import (
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"writ/storage"
	"writ/storage/embedded"
)

// openStore opens the store of the deployment. Nothing else here knows which it
// is.
func (c *serveCmd) openStore(log *slog.Logger, metrics prometheus.Registerer) (storage.Store, error) {
	s, err := embedded.Open(c.Data.store(), embedded.Options{
		WriteBehind: c.AuditAck.behind(), AcceptRollback: c.AcceptRollback, Log: log, Metrics: metrics,
	})
	if err != nil {
		return nil, err // a nil *embedded.Store is no nil Store
	}
	return s, nil
}
