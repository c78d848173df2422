package kafka_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"writ.example/writ/storage"
	"writ.example/writ/storage/decisionlog"
	"writ.example/writ/storage/decisionlog/kafka"
)

const topic = "decisions"

// startBroker starts franz-go's brokers in this process: Kafka itself needs a JVM, which tests do not have.
func startBroker(t *testing.T) *kfake.Cluster {
	t.Helper()
	c, err := kfake.NewCluster(kfake.NumBrokers(2), kfake.SeedTopics(3, topic))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func open(t *testing.T, c *kfake.Cluster) *kafka.Sink {
	t.Helper()
	s, err := kafka.Open(strings.Join(c.ListenAddrs(), ",")+"/"+topic, kafka.Security{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// rows returns n rows of two chains in turn, numbered from first.
func rows(first, n int) (all []decisionlog.Row) {
	for i := first; i < first+n; i++ {
		all = append(all, decisionlog.Row{
			Chain: [16]byte{byte(i % 2)}, JSON: fmt.Appendf(nil, `{"n":%d}`, i),
			Record: &storage.Record{OrganizationID: "acme", DecidedAt: time.UnixMilli(1_800_000_000_000)},
		})
	}
	return all
}

// wantRows reads the topic and checks that each chain has its rows from 0 to n in order, in one partition.
func wantRows(t *testing.T, c *kfake.Cluster, n int) {
	t.Helper()
	reader, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	next, partitions := map[string]int{}, map[string]int32{}
	for got := 0; got < n; {
		fetches := reader.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatalf("reading the topic: %v, with %d of %d rows", err, got, n)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			chain := string(r.Key)
			if next[chain] == 0 {
				next[chain], partitions[chain] = 1+int(chain[1]-'0'), r.Partition // rows count from 1 here
			}
			if want := fmt.Sprintf(`{"n":%d}`, next[chain]-1); string(r.Value) != want || r.Partition != partitions[chain] {
				t.Errorf("chain %s has %s in partition %d, want %s in %d", chain, r.Value, r.Partition, want, partitions[chain])
			}
			if len(r.Headers) != 1 || string(r.Headers[0].Value) != "acme" {
				t.Errorf("headers = %v", r.Headers)
			}
			got, next[chain] = got+1, next[chain]+2
		})
	}
}

func send(t *testing.T, s *kafka.Sink, rows []decisionlog.Row) {
	t.Helper()
	if err := s.Send(t.Context(), rows); err != nil {
		t.Fatal(err)
	}
}

func TestSink_KeepsTheOrderOfAChain(t *testing.T) {
	c := startBroker(t)
	s := open(t, c)
	send(t, s, rows(0, 3000))
	send(t, s, rows(3000, 10))
	wantRows(t, c, 3010)
}

// TestSink_TriesAgain has brokers refuse every second write with an error that passes. Each row must be
// there once and in order, also with several writes under way.
func TestSink_TriesAgain(t *testing.T) {
	c := startBroker(t)
	s := open(t, c)
	faults := 0
	c.ControlKey(int16(kmsg.Produce), func(asked kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		if faults++; faults%2 == 0 {
			return nil, nil, false
		}
		answer := asked.ResponseKind().(*kmsg.ProduceResponse)
		for _, of := range asked.(*kmsg.ProduceRequest).Topics {
			failed := kmsg.NewProduceResponseTopic()
			failed.Topic, failed.TopicID = of.Topic, of.TopicID
			for _, p := range of.Partitions {
				part := kmsg.NewProduceResponseTopicPartition()
				part.Partition, part.ErrorCode = p.Partition, kerr.NotLeaderForPartition.Code
				failed.Partitions = append(failed.Partitions, part)
			}
			answer.Topics = append(answer.Topics, failed)
		}
		return answer, nil, true
	})
	send(t, s, rows(0, 500))
	send(t, s, rows(500, 500))
	wantRows(t, c, 1000)
	if faults < 2 {
		t.Errorf("%d faults, want some", faults)
	}
}

func TestSink_FailsWithoutABroker(t *testing.T) {
	c := startBroker(t)
	s := open(t, c)
	c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := s.Send(ctx, rows(0, 1)); err == nil {
		t.Error("Send without a broker = nil, want an error")
	}
}

func TestOpen_RefusesWhatIsNoTopic(t *testing.T) {
	for _, at := range []string{"", "kafka:9092", "kafka:9092/", "/topic", "kafka:9092/a/b", "user:zq7canary@kafka:9092/topic"} {
		if s, err := kafka.Open(at, kafka.Security{}); err == nil || strings.Contains(err.Error(), "zq7canary") {
			t.Errorf("Open(%q) = %v, %v, want an error without the password", at, s, err)
		}
	}
}
