package api

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"writ.example/writ/api/console"
	"writ.example/writ/api/limit"
	"writ.example/writ/api/operator"
	"writ.example/writ/api/stream"
	"writ.example/writ/api/wire"
	"writ.example/writ/decision"
	"writ.example/writ/storage"
	"writ.example/writ/storage/registry"
)

// Server answers writ's HTTP interface. [New] makes it.
type Server struct {
	cfg         Config
	decisions   *decision.Service
	store       storage.Store      // the store of decisions
	docs        *registry.Registry // the documents in store
	app         *fiber.App
	admin       *http.Server
	auth        *auth
	metrics     *metrics
	throttle    *throttle
	site        *site
	console     *console.Console
	handler     fasthttp.RequestHandler // answers requests of the public address
	ids         *requestIDs
	scratch     *sync.Pool
	deadlines   deadlines
	headers     []header // the headers of every response
	shown       []header // the further headers of a response that needs no credential
	refused     requestLog
	connections *limit.Tally[limit.Address]
	exports     *limit.Tally[string] // by organization
	stream      *stream.Hub
	viewers     *limit.Tally[string] // streams, by organization
	intents     *intentStreams
	polls       *limit.Tally[string] // look-ups that wait for a verdict, by organization

	// giveUp ends the contexts of requests and the refreshing of keys. background waits for that refreshing. unwatch
	// makes the store stop reporting changes.
	giveUp     context.CancelFunc
	awake      context.Context // of look-ups that wait, and of streams; it ends as soon as the server begins to stop
	endPolls   context.CancelFunc
	background sync.WaitGroup
	unwatch    func()

	mu       sync.Mutex
	listener net.Listener // of the public address, once it is served
	closed   bool
}

// New returns a server for cfg that is ready to serve. It reads the keys of operator tokens and registers the metrics
// of the server. From then on the server follows the changes of the store: it forgets a credential before the write
// that changes the credential returns. Shutdown must be called to release the server.
func New(cfg Config) (*Server, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("configuring the server: %w", err)
	}
	site, err := loadSite()
	if err != nil {
		return nil, fmt.Errorf("preparing the public pages: %w", err)
	}
	life, giveUp := context.WithCancel(context.Background())
	s := &Server{
		cfg:       cfg,
		decisions: cfg.Decisions,
		store:     cfg.Decisions.Store,
		docs:      cfg.Decisions.Documents,
		site:      site,
		metrics:   newMetrics(cfg.Registry),
		ids:       newRequestIDs(cfg.ServiceToken),
		scratch:   newScratchPool(),
		deadlines: deadlines{base: life, timeout: cfg.Limits.Handle},
		headers:   everyResponse(cfg.Hosted.APIURL),
		shown:     publicResponse(),
		refused:   requestLog{log: cfg.Log},
		polls:     limit.NewTally[string](maxPolls, maxPolls/4),
		exports:   limit.NewTally[string](maxExports, maxExports/16),
		viewers:   limit.NewTally[string](maxViewers, maxViewers/4),
		intents:   newIntentStreams(cfg.Registry),

		connections: limit.NewTally[limit.Address](math.MaxInt, cfg.Limits.AddressConnections),
		giveUp:      giveUp,
	}
	if s.console, err = s.newConsole(); err != nil {
		giveUp()
		return nil, err
	}
	operators, err := operator.Open(life, cfg.Operators, s.decisions.Now, cfg.Log)
	if err != nil {
		giveUp()
		return nil, fmt.Errorf("configuring the server: %w", err)
	}
	s.auth = newAuth(s.docs, operators, cfg.ServiceToken, newFailures(s.metrics.authFailures))
	s.background.Go(func() { operators.Run(life) })
	s.throttle = newThrottle(cfg.RateLimits, cfg.Registry)
	cfg.Registry.MustRegister(slices.Concat(s.gauges(), s.auth.keys.Metrics("api_keys"),
		s.auth.jwts.Metrics("operators"))...)
	s.auth.keys.OnlyWhile(s.docs.Fresh)
	s.awake, s.endPolls = context.WithCancel(life)
	s.stream = stream.New(stream.Config{History: s.store, Now: s.decisions.Now, Log: cfg.Log}, cfg.Registry)
	s.background.Go(func() { s.stream.Run(s.awake) })
	s.unwatch = s.store.Watch(s.changed)
	s.app = s.newApp()
	s.admin = s.newAdmin()
	return s, nil
}

// changed forgets credentials that a change of the store has made stale.
func (s *Server) changed(c storage.Change) {
	switch c.Kind {
	case storage.TokenKind:
		s.auth.forget(c.ID)
		s.intents.recheck(c.ID)
	case storage.AgentKind:
		s.stream.Renamed(c.Org)
	case storage.EverythingChanged:
		s.auth.keys.InvalidateAll()
		s.intents.recheck("")
		s.stream.Renamed("")
	}
}

func (s *Server) newApp() *fiber.App {
	l := s.cfg.Limits
	app := fiber.New(fiber.Config{
		CaseSensitive:                true,
		StrictRouting:                true,
		DisableStartupMessage:        true,
		DisableDefaultContentType:    true,
		DisablePreParseMultipartForm: true,
		BodyLimit:                    l.Body, // HeaderReceived below sets the limit of a batch or a list
		ReadBufferSize:               l.Header,
		Concurrency:                  l.Connections + 1, // the listener enforces the limit
		ReadTimeout:                  l.Read,
		WriteTimeout:                 l.Write,
		IdleTimeout:                  l.Idle,
		ErrorHandler: func(c *fiber.Ctx, err error) error {
			s.handleError(c.Context(), err)
			return nil
		},
	})
	s.mount(app)
	server := app.Server()
	server.CloseOnShutdown = true
	server.ConnState = func(conn net.Conn, state fasthttp.ConnState) {
		if c, ok := conn.(*wire.Conn); ok && state == fasthttp.StateActive {
			c.DropPassed()
		}
	}
	server.HeaderReceived = func(h *fasthttp.RequestHeader) fasthttp.RequestConfig {
		most := l.Body
		uri := string(h.RequestURI())
		if uri == batchPath || uri == evaluationsPath || strings.HasPrefix(uri, listsPath) {
			most = max(most, storage.MaxBody)
		}
		if h.ContentLength() > most {
			// The request is refused for its length, so the client must not be asked to send the body.
			h.Del(fiber.HeaderExpect)
		}
		if streamsBody(h) {
			wire.LeaveBody(h)
		}
		return fasthttp.RequestConfig{MaxRequestBodySize: most}
	}
	inner := app.Handler() // it also makes the router complete, which requests may use before Serve
	s.handler = inner
	server.Handler = func(ctx *fasthttp.RequestCtx) {
		if streamsBody(&ctx.Request.Header) {
			defer wire.CloseUnread(ctx)
		}
		if err := wire.Ambiguous(ctx.Request.Header.RawHeaders(), ctx.Request.Header.IsHTTP11()); err != nil {
			s.refuseFraming(ctx, err)
			return
		}
		// Fiber itself answers an unknown method, in plain text. No route has the method TRACE. So the method becomes
		// TRACE here, and the answer is a 404 or a 405 like any other.
		if !slices.Contains(fiber.DefaultMethods, string(ctx.Method())) {
			ctx.Request.Header.SetMethod(http.MethodTrace)
		}
		inner(ctx)
	}
	return app
}

// Serve answers requests of the public address until ln fails or Shutdown is called. After Shutdown it returns nil. It
// closes ln. It may be called once.
func (s *Server) Serve(ln net.Listener) error {
	limited := wire.Listen(ln, s.cfg.Limits.Connections, s.enter)
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return ln.Close()
	}
	s.listener = limited
	s.mu.Unlock()
	if err := s.app.Listener(limited); err != nil {
		return fmt.Errorf("serving: %w", err)
	}
	return nil
}

// Shutdown stops accepting and finishes the requests that were accepted. Then it stops the admin address and the
// background work. If ctx ends first, Shutdown gives up the remaining requests, whose callers get an error. It then
// returns ctx's error.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	first := !s.closed
	s.closed = true
	ln := s.listener
	s.mu.Unlock()
	if !first {
		return nil
	}
	s.endPolls()
	var err error
	if ln != nil {
		err = errors.Join(ln.Close(), s.app.ShutdownWithContext(ctx), s.intents.wait(ctx))
	}
	s.giveUp()
	s.intents.open.Close()
	s.unwatch()
	s.background.Wait()
	s.exports.Close()
	s.viewers.Close()
	if err = errors.Join(err, s.admin.Shutdown(ctx)); err != nil {
		return fmt.Errorf("shutting down: %w", err)
	}
	return nil
}
