package mongodb

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.mongodb.org/mongo-driver/v2/event"

	"writ.example/writ/internal/telemetry"
)

// commands are the commands that the store sends regularly. Each has a label of its own. All other
// commands share the label "other".
var commands = []string{
	"abortTransaction", "aggregate", "commitTransaction", "delete", "find", "findAndModify", "getMore", "insert",
	"update",
}

// States of connections.
const (
	opening = "opening"
	idle    = "idle"
	inUse   = "in_use"
)

// noConnection are the labels of the reasons why an operation got no connection.
var noConnection = map[string]string{
	event.ReasonTimedOut: "timeout", event.ReasonConnectionErrored: "connection_error",
	event.ReasonPoolClosed: "pool_closed",
}

type connection struct {
	member string
	id     int64
}

// metrics are the metrics of a store and its driver. No label
// names a member of the replica set, a user or an organization.
type metrics struct {
	durations   *prometheus.HistogramVec // by command and outcome
	connections *prometheus.GaugeVec     // by state
	waits       prometheus.Histogram
	refusals    *prometheus.CounterVec // by reason
	replaced    prometheus.Counter
	givenUp     prometheus.Counter
	ahead       prometheus.Gauge

	mu     sync.Mutex
	states map[connection]string

	unregister func()
}

func newMetrics() *metrics {
	buckets := prometheus.ExponentialBuckets(250e-6, 2.5, 12)
	m := &metrics{
		durations: telemetry.HistogramVec("writ_mongodb_command_duration_seconds",
			"Time that MongoDB took to answer a command.", []string{"command", "outcome"}, buckets...),
		connections: telemetry.GaugeVec("writ_mongodb_connections",
			"Connections to the members of the replica set, those that monitor it not counted.", "state"),
		waits: telemetry.Histogram("writ_mongodb_connection_wait_seconds",
			"Time that operations waited for a connection.", buckets...),
		refusals: telemetry.CounterVec("writ_mongodb_connection_failures_total",
			"Operations that got no connection, by reason.", "reason"),
		replaced: telemetry.Counter("writ_mongodb_streams_replaced_total",
			"Times that the stream of changes failed or could not be opened."),
		givenUp: telemetry.Counter("writ_mongodb_replicas_given_up_total", "Silent replicas that this one gave up."),
		ahead: telemetry.Gauge("writ_mongodb_clock_ahead_seconds",
			"How far the clock of this process is ahead of the primary's."),
		states:     make(map[connection]string),
		unregister: func() {},
	}
	for _, state := range []string{opening, idle, inUse} {
		m.connections.WithLabelValues(state)
	}
	for _, reason := range noConnection {
		m.refusals.WithLabelValues(reason)
	}
	return m
}

// register registers the metrics. It does nothing if reg is nil.
func (m *metrics) register(reg prometheus.Registerer) (err error) {
	if m.unregister, err = telemetry.Register(reg, m.durations, m.connections, m.waits, m.refusals, m.replaced,
		m.givenUp, m.ahead); err != nil {
		return fmt.Errorf("registering metrics: %w", err)
	}
	return nil
}

// command returns a monitor of the driver's commands.
func (m *metrics) command() *event.CommandMonitor {
	return &event.CommandMonitor{
		Succeeded: func(_ context.Context, e *event.CommandSucceededEvent) {
			m.answered(e.CommandName, "succeeded", e.Duration)
		},
		Failed: func(_ context.Context, e *event.CommandFailedEvent) {
			m.answered(e.CommandName, "failed", e.Duration)
		},
	}
}

func (m *metrics) answered(command, outcome string, took time.Duration) {
	if !slices.Contains(commands, command) {
		command = "other"
	}
	m.durations.WithLabelValues(command, outcome).Observe(took.Seconds())
}

func (m *metrics) pool() *event.PoolMonitor {
	return &event.PoolMonitor{Event: func(e *event.PoolEvent) {
		c := connection{e.Address, e.ConnectionID}
		switch e.Type {
		case event.ConnectionCreated:
			m.move(c, "", opening)
		case event.ConnectionReady:
			m.move(c, opening, idle)
		case event.ConnectionCheckedOut:
			m.move(c, idle, inUse)
			m.waits.Observe(e.Duration.Seconds())
		case event.ConnectionCheckedIn:
			m.move(c, inUse, idle)
		case event.ConnectionClosed:
			m.closed(c)
		case event.ConnectionCheckOutFailed:
			m.refusals.WithLabelValues(noConnection[e.Reason]).Inc()
		}
	}}
}

func (m *metrics) move(c connection, from, to string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.states[c] != from {
		return
	}
	if from != "" {
		m.connections.WithLabelValues(from).Dec()
	}
	m.states[c] = to
	m.connections.WithLabelValues(to).Inc()
}

func (m *metrics) closed(c connection) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if state, ok := m.states[c]; ok {
		m.connections.WithLabelValues(state).Dec()
		delete(m.states, c)
	}
}
