package bench

import (
	"crypto/tls"
	"flag"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"writ.example/writ/authoring/workspace"
	"writ.example/writ/bench/corpus"
	"writ.example/writ/bench/proc"
	"writ.example/writ/internal/tlsfiles/tlstest"
)

var overTLS struct {
	writ                         string
	rounds, clients, evaluations int
}

func init() {
	flag.StringVar(&overTLS.writ, "tls", "", "binary of writ: measure what TLS costs a request")
	flag.IntVar(&overTLS.rounds, "tls-rounds", 10, "rounds that are measured")
	flag.IntVar(&overTLS.clients, "tls-clients", 16, "clients, each with a connection that it keeps")
	flag.IntVar(&overTLS.evaluations, "tls-evaluations", 8000, "evaluations of a server in a round")
}

// TestTLS measures the processor time a request of a server with TLS beside that of a server without, in turn, and
// of another one without, which is the noise. Clients keep their connections.
func TestTLS(t *testing.T) {
	if overTLS.writ == "" {
		t.Skip("bench/run.sh tls measures")
	}
	authority := tlstest.NewAuthority(t)
	cert, key := authority.Certificate(time.Now().Add(time.Hour))
	with := &http.Transport{MaxIdleConnsPerHost: overTLS.clients, TLSClientConfig: &tls.Config{RootCAs: authority.Pool}}
	servers := []*tlsServer{
		serveAgain(t, "http", &http.Transport{MaxIdleConnsPerHost: overTLS.clients}),
		serveAgain(t, "http", &http.Transport{MaxIdleConnsPerHost: overTLS.clients}),
		serveAgain(t, "https", with, "--tls-cert", cert, "--tls-key", key),
	}
	for round := range overTLS.rounds + 1 { // the first warms up
		for _, s := range servers {
			spent := s.evaluate(t)
			if round > 0 {
				s.spent = append(s.spent, spent)
			}
		}
	}
	plain, again, secure := middle(servers[0].spent), middle(servers[1].spent), middle(servers[2].spent)
	say("%d rounds of %d evaluations, %d clients; processor time of the server a request, median of rounds:", overTLS.rounds, overTLS.evaluations, overTLS.clients)
	say("  http %v, http again %v, https %v", plain, again, secure)
	say("  http again / http %.3f, https / http %.3f", float64(again)/float64(plain), float64(secure)/float64(plain))
}

// tlsServer is a server that is measured, with or without TLS.
type tlsServer struct {
	client workspace.Client
	pid    int
	spent  []time.Duration // a request, by round
}

// serveAgain starts a server with work in its directory, then again with flags.
func serveAgain(t *testing.T, scheme string, transport http.RoundTripper, flags ...string) *tlsServer {
	t.Helper()
	p := Program{Name: "writ", Binary: overTLS.writ, Dir: t.TempDir()}
	s, err := p.Start(t.Context(), Work{Organization: "acme", Organizations: 1, Policies: 1})
	must(t, err)
	c := operatorAt(t, s, "acme")
	must(t, s.Stop())
	addr, err := freeAddress()
	must(t, err)
	args := append([]string{"serve", "--addr", addr, "--admin-addr", "127.0.0.1:0", "--data", s.data, "--plans", p.Dir + "/plans.json"}, flags...)
	started, err := startProcess(t.Context(), addr, nil, []string{"WRIT_RATE_LIMIT_ADDRESS=off", "WRIT_RATE_LIMIT_CREDENTIAL=off"}, p.Binary, args...)
	must(t, err)
	t.Cleanup(func() {
		if err := started.stop(); err != nil {
			t.Error(err)
		}
	})
	c.Base = scheme + "://" + addr
	c.Transport = transport
	return &tlsServer{client: c, pid: started.cmd.Process.Pid}
}

// evaluate sends the evaluations of a round and returns the server's processor time for each.
func (s *tlsServer) evaluate(t *testing.T) time.Duration {
	t.Helper()
	before := proc.Spent(s.pid)
	var clients sync.WaitGroup
	for range overTLS.clients {
		clients.Go(func() {
			in := corpus.AllowedIntent()
			for range overTLS.evaluations / overTLS.clients {
				in.IntentID = uuid.NewString()
				if err := s.client.Do(t.Context(), http.MethodPost, "/v1/policy/evaluate", map[string]any{"policy_id": in.PolicyID, "intent": in}, nil); err != nil {
					t.Error(fmt.Errorf("evaluating: %w", err))
					return
				}
			}
		})
	}
	clients.Wait()
	return (proc.Spent(s.pid) - before) / time.Duration(overTLS.evaluations)
}

func middle(all []time.Duration) time.Duration { return slices.Sorted(slices.Values(all))[len(all)/2] }
