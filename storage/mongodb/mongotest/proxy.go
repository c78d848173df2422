package mongotest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
)

// proxy puts a proxy before each member. Clients and the other members reach a member through
// its proxy.
func (s *Set) proxy() error {
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	for i, m := range s.members {
		p := toxiproxy.NewProxy(server, fmt.Sprint(i), "127.0.0.1:0", m.addr)
		if err := p.Start(); err != nil {
			return fmt.Errorf("starting a proxy: %w", err)
		}
		m.public, m.proxy = p.Listen, p
	}
	return nil
}

// Refuse makes the address of a member refuse connections and ends existing ones.
func (s *Set) Refuse(i int) { s.members[i].proxy.Stop() }

// Swallow drops the data that is sent to a member. If both is true, it also drops the answers
// of the member. The connections stay open.
func (s *Set) Swallow(i int, both bool) error {
	streams := []string{"upstream"}
	if both {
		streams = append(streams, "downstream")
	}
	for _, stream := range streams {
		toxic := fmt.Sprintf(`{"type": "timeout", "stream": %q, "attributes": {"timeout": 0}}`, stream)
		if _, err := s.members[i].proxy.Toxics.AddToxicJson(strings.NewReader(toxic)); err != nil {
			return err
		}
	}
	return nil
}

// Delay makes each answer of each member take longer, to clients and to other members.
func (s *Set) Delay(d time.Duration) error {
	for _, m := range s.members {
		toxic := fmt.Sprintf(`{"type": "latency", "stream": "downstream", "attributes": {"latency": %d}}`, d.Milliseconds())
		if _, err := m.proxy.Toxics.AddToxicJson(strings.NewReader(toxic)); err != nil {
			return err
		}
	}
	return nil
}

// Mend ends the effect of Refuse or Swallow. Connections that have lost data end.
func (s *Set) Mend(ctx context.Context, i int) error {
	p := s.members[i].proxy
	p.Toxics.ResetToxics(ctx)
	for {
		err := p.Start()
		if err == nil || errors.Is(err, toxiproxy.ErrProxyAlreadyStarted) {
			return nil
		}
		select { // an outgoing connection may use the port for a moment
		case <-ctx.Done():
			return err
		case <-time.After(50 * time.Millisecond):
		}
	}
}
