package api

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// readyTimeout bounds how long /readyz asks the store.
const readyTimeout = 2 * time.Second

// newAdmin makes the server of the admin address. The admin address asks for no credential, so it must not be reachable
// from outside.
func (s *Server) newAdmin() *http.Server {
	return &http.Server{
		Handler:           s.Admin(),
		ReadHeaderTimeout: s.cfg.Limits.Read,
		ReadTimeout:       s.cfg.Limits.Read,
		WriteTimeout:      s.cfg.Limits.Write,
		IdleTimeout:       s.cfg.Limits.Idle,
	}
}

// Admin returns the handler of the admin address: /livez, /readyz, /metrics, /reload, /backup,
// /doctor and /debug.
func (s *Server) Admin() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) {
		plain(w, http.StatusOK, "ok")
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, req *http.Request) {
		ctx, cancel := context.WithTimeout(req.Context(), readyTimeout)
		defer cancel()
		if err := s.ready(ctx); err != nil {
			plain(w, http.StatusServiceUnavailable, err.Error())
			return
		}
		text := "ok"
		if b, ok := s.decisions.Store.(builder); ok && b.Building() != "" {
			text += "\n" + b.Building()
		}
		plain(w, http.StatusOK, text)
	})
	if s.cfg.Reload != nil {
		mux.HandleFunc("POST /reload", s.reload)
	}
	if s.cfg.Backup != nil {
		mux.HandleFunc("POST /backup/{name}", s.backup)
	}
	for path, write := range s.cfg.Inspect {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, req *http.Request) {
			if refuseBrowser(w, req) || !unhurried(w) {
				return
			}
			w.Header().Set("Cache-Control", "no-store")
			if err := write(req.Context(), w); err != nil {
				s.cfg.Log.Warn("an answer of the admin address was cut off", "path", path, "error", err)
				panic(http.ErrAbortHandler) // the answer must not look whole
			}
		})
	}
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.cfg.Registry, promhttp.HandlerOpts{
		Registry:          s.cfg.Registry,
		EnableOpenMetrics: true,
		// If a collector fails, only its own metrics are missing. Simultaneous scrapes share one
		// collection.
		ErrorHandling:  promhttp.ContinueOnError,
		CoalesceGather: true,
	}))
	return mux
}

// refuseBrowser answers a page in a browser of this host, which must not ask for anything, and reports whether it did.
func refuseBrowser(w http.ResponseWriter, req *http.Request) bool {
	if req.Header.Get("Origin") == "" && req.Header.Get("Sec-Fetch-Site") == "" {
		return false
	}
	plain(w, http.StatusForbidden, "browsers may not ask for this")
	return true
}

// unhurried lets an answer take as long as it takes. The caller ends it by closing the connection.
func unhurried(w http.ResponseWriter) bool {
	if err := http.NewResponseController(w).SetWriteDeadline(time.Time{}); err != nil {
		plain(w, http.StatusInternalServerError, err.Error())
		return false
	}
	return true
}

// backup has a backup made. The answer comes when it is durable.
func (s *Server) backup(w http.ResponseWriter, req *http.Request) {
	if refuseBrowser(w, req) || !unhurried(w) {
		return
	}
	said, err := s.cfg.Backup(req.Context(), req.PathValue("name"))
	if err != nil {
		plain(w, http.StatusUnprocessableEntity, "no backup was made: "+err.Error())
		return
	}
	plain(w, http.StatusOK, said)
}

// reload has the deployment's settings read again.
func (s *Server) reload(w http.ResponseWriter, req *http.Request) {
	if refuseBrowser(w, req) {
		return
	}
	said, err := s.cfg.Reload()
	if err != nil {
		plain(w, http.StatusUnprocessableEntity, "nothing has changed: "+err.Error())
		return
	}
	plain(w, http.StatusOK, said)
}

// builder is a store that builds indexes while it serves. Building says which.
type builder interface{ Building() string }

// ready returns nil if the server can take requests. Otherwise the error says why it cannot.
func (s *Server) ready(ctx context.Context) error {
	s.mu.Lock()
	closed := s.closed
	s.mu.Unlock()
	if closed {
		return errors.New("shutting down")
	}
	return s.decisions.Healthy(ctx)
}

func plain(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = fmt.Fprintln(w, text) // a disconnected prober needs no answer
}

// ServeAdmin answers requests of the admin address until ln fails or Shutdown is called. After Shutdown it returns nil.
// It closes ln.
func (s *Server) ServeAdmin(ln net.Listener) error {
	if err := s.admin.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving the admin address: %w", err)
	}
	return nil
}
