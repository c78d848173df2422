package envoy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"writ.example/writ/internal/tlsfiles"
)

// unixPrefix begins the address of a Unix socket.
const unixPrefix = "unix:"

// Server is a listener and the gRPC server behind it.
type Server struct {
	listener net.Listener
	grpc     *grpc.Server
}

// Listen listens on HOST:PORT by files, which must ask for certificates of clients, or without files on
// unix:PATH, which only the user of this process can open.
func Listen(ctx context.Context, addr string, files *tlsfiles.Server, a *Authorizer) (*Server, error) {
	options := []grpc.ServerOption{
		grpc.UnaryInterceptor(a.recovered), grpc.MaxConcurrentStreams(maxStreams), grpc.NumStreamWorkers(workers),
		grpc.InitialWindowSize(window), grpc.InitialConnWindowSize(window),
	}
	var s Server
	var err error
	path, unix := strings.CutPrefix(addr, unixPrefix)
	switch {
	case unix && files != nil:
		return nil, errors.New("a Unix socket has no TLS: leave out the certificates")
	case unix:
		s.listener, err = listenUnix(ctx, path)
	case files == nil || !files.AsksClients():
		return nil, errors.New("want a certificate, its key and the CA of client certificates, or unix:PATH")
	default:
		options = append(options, grpc.Creds(credentials.NewTLS(files.Config("h2"))))
		var listen net.ListenConfig
		s.listener, err = listen.Listen(ctx, "tcp", addr)
	}
	if err != nil {
		return nil, err
	}
	s.grpc = grpc.NewServer(options...)
	authv3.RegisterAuthorizationServer(s.grpc, a)
	return &s, nil
}

// maxStreams bounds the checks that one connection waits for.
const maxStreams = 4096

const (
	// workers is how many goroutines are kept for checks. A new goroutine would grow its stack for each check.
	workers = 64
	// window is how many bytes a client may send before they are read. Without a fixed window gRPC estimates one: it
	// answers each check with a ping and waits for its echo.
	window = 1 << 20
)

// Addr returns the address of the listener.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Serve answers checks until Shutdown.
func (s *Server) Serve() error { return s.grpc.Serve(s.listener) }

// Shutdown takes no more checks, and waits until ctx ends for those that it has taken.
func (s *Server) Shutdown(ctx context.Context) {
	defer context.AfterFunc(ctx, s.grpc.Stop)()
	s.grpc.GracefulStop()
}

// recovered turns a panic into an error, on which Envoy refuses the request.
func (a *Authorizer) recovered(
	ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler,
) (res any, err error) {
	defer func() {
		if p := recover(); p != nil {
			a.settings.Log.Error("panic in a check of Envoy", "panic", p, "stack", string(debug.Stack()))
			res, err = nil, status.Error(codes.Internal, "the check failed")
		}
	}()
	return next(ctx, req)
}

// listenUnix makes a socket that only this user can open. It makes it in a directory of its own first,
// so that nobody can open it before its mode is set. It replaces a socket on which nobody listens.
func listenUnix(ctx context.Context, path string) (_ net.Listener, err error) {
	info, err := os.Lstat(path)
	switch {
	case err == nil && info.Mode().Type() != os.ModeSocket:
		return nil, fmt.Errorf("%s is no socket", path)
	case err == nil:
		var dial net.Dialer
		if conn, err := dial.DialContext(ctx, "unix", path); err == nil {
			return nil, errors.Join(fmt.Errorf("%s: another process listens on it", path), conn.Close())
		}
	case !errors.Is(err, os.ErrNotExist):
		return nil, err
	}
	dir, err := os.MkdirTemp(filepath.Dir(path), ".writ-*")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	var listen net.ListenConfig
	l, err := listen.Listen(ctx, "unix", filepath.Join(dir, "s"))
	if err != nil {
		return nil, err
	}
	socket := l.(*net.UnixListener)
	socket.SetUnlinkOnClose(false)
	err = os.Chmod(filepath.Join(dir, "s"), 0o600)
	if err == nil {
		err = os.Rename(filepath.Join(dir, "s"), path)
	}
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return socket, nil
}
