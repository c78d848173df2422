// Package kafka sends rows of the decision log to a topic of Kafka, or of another broker with its protocol. It
// is the only package that imports franz-go.
//
// A message has the line as its value, and the hexadecimal id of the row's chain as its key. So the rows of a
// chain are in one partition, in their order. The header organization_id has the organization. Writes are
// idempotent and acknowledged by all replicas that are in sync.
package kafka

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"writ.example/writ/storage"
	"writ.example/writ/storage/decisionlog"
)

// patience bounds one Send. Rows that are not acknowledged by then are sent again.
const patience = 30 * time.Second

// largest bounds a batch of messages. The longest row is twice as long as the longest body, but few brokers
// take more than 1 MiB: see max.message.bytes of the topic.
const largest = 2 * storage.MaxBody

// Sink sends rows to a topic. The acknowledgement of the brokers confirms them.
type Sink struct{ client *kgo.Client }

// Open returns a sink for BROKERS/TOPIC, with brokers as host:port and commas between them. It connects
// with the first Send.
func Open(at string, security Security) (*Sink, error) {
	brokers, topic, found := strings.Cut(at, "/")
	if !found || brokers == "" || topic == "" || strings.ContainsAny(topic, "/:,") || strings.Contains(brokers, "@") {
		return nil, errors.New("want BROKERS/TOPIC, such as kafka-1:9092,kafka-2:9092/decisions")
	}
	options, err := security.options()
	if err != nil {
		return nil, err
	}
	client, err := kgo.NewClient(append(options,
		kgo.SeedBrokers(strings.Split(brokers, ",")...), kgo.DefaultProduceTopic(topic), kgo.ClientID("writ"),
		kgo.RequiredAcks(kgo.AllISRAcks()), kgo.ProducerBatchMaxBytes(largest), kgo.BrokerMaxWriteBytes(2*largest),
		kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)), kgo.DisableClientMetrics(),
		kgo.MetadataMinAge(250*time.Millisecond), // how soon a new leader of a partition is found
	)...)
	if err != nil {
		return nil, fmt.Errorf("making the client of Kafka: %w", err)
	}
	return &Sink{client}, nil
}

// Send implements [decisionlog.Sink].
func (s *Sink) Send(ctx context.Context, rows []decisionlog.Row) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	records := make([]*kgo.Record, len(rows))
	for i := range rows {
		row := &rows[i]
		records[i] = &kgo.Record{
			Key: hex.AppendEncode(nil, row.Chain[:]), Value: row.JSON, Timestamp: row.Record.DecidedAt,
			Headers: []kgo.RecordHeader{{Key: "organization_id", Value: []byte(row.Record.OrganizationID)}},
		}
	}
	return s.client.ProduceSync(ctx, records...).FirstErr()
}

// Close implements [decisionlog.Sink].
func (s *Sink) Close() error {
	s.client.Close()
	return nil
}
