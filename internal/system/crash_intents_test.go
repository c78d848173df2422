package system

import (
	"bufio"
	"cmp"
	"context"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fasthttp/websocket"
	"github.com/go-json-experiment/json"
)

// lineAnswer is what a server says of a line of a stream of intents.
type lineAnswer struct {
	Ref        string `json:"ref"`
	DecisionID string `json:"decision_id"`
	Replayed   bool   `json:"replayed"`
	Closing    string `json:"closing"`
}

// intentStream is the client's end of a stream of intents.
type intentStream struct {
	send  func(line []byte) error
	next  func() ([]byte, error)
	close func() error
}

// openSocket opens a stream of intents as a WebSocket.
func openSocket(t *testing.T, url, token string) intentStream {
	t.Helper()
	dialer := websocket.Dialer{Subprotocols: []string{"writ.v1"}}
	conn, res, err := dialer.Dial(strings.Replace(url, "http", "ws", 1)+"/v1/policy/evaluate/stream",
		http.Header{"Authorization": {"Bearer " + token}})
	must(t, err)
	_ = res.Body.Close()
	return intentStream{
		send: func(line []byte) error { return conn.WriteMessage(websocket.TextMessage, line) },
		next: func() ([]byte, error) {
			if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
				return nil, err
			}
			_, text, err := conn.ReadMessage()
			return text, err
		},
		close: conn.Close,
	}
}

// openLines opens a stream of intents in the body of a request.
func openLines(t *testing.T, url, token string) intentStream {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	body, sent := io.Pipe()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/policy/evaluate/stream", body)
	must(t, err)
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/x-ndjson")
	res, err := new(http.Transport).RoundTrip(req)
	must(t, err)
	if res.StatusCode != http.StatusOK {
		t.Fatalf("a stream in a body is answered with %s", res.Status)
	}
	answers := bufio.NewScanner(res.Body)
	return intentStream{
		send: func(line []byte) error {
			_, err := sent.Write(append(line, '\n'))
			return err
		},
		next: func() ([]byte, error) {
			silent := time.AfterFunc(time.Minute, cancel)
			defer silent.Stop()
			if answers.Scan() {
				return answers.Bytes(), nil
			}
			return nil, cmp.Or(answers.Err(), io.EOF)
		},
		close: func() error { cancel(); return sent.Close() },
	}
}

// streamIntents sends intents over a stream until it has n answers or the connection ends. It returns the answers by the
// intents' ids.
func streamIntents(t *testing.T, stream intentStream, n int, next func() intent, count *atomic.Int64) map[string]lineAnswer {
	t.Helper()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		for range n {
			in := next()
			line := append([]byte(`{"ref":"`+in.id+`",`), in.body[1:]...)
			if stream.send(line) != nil {
				return
			}
		}
	}()
	answers := make(map[string]lineAnswer)
	for len(answers) < n {
		text, err := stream.next()
		if err != nil {
			break // the server was killed or has stopped
		}
		var a lineAnswer
		if len(text) == 0 {
			continue
		}
		if err := json.Unmarshal(text, &a); err != nil {
			t.Fatal(err)
		}
		if a.Ref == "" {
			continue
		}
		if _, twice := answers[a.Ref]; twice || a.DecisionID == "" {
			t.Errorf("a stream answers %s, want one decision for each intent", text)
		}
		answers[a.Ref] = a
		count.Add(1)
	}
	_ = stream.close()
	<-sent
	return answers
}

// TestCrash_StreamOfIntents kills the real binary, and stops it, while a stream has intents on their way. Afterwards
// every decision that was answered stands, and no intent is decided twice.
func TestCrash_StreamOfIntents(t *testing.T) {
	t.Run("socket", func(t *testing.T) { t.Parallel(); crashStream(t, openSocket) })
	t.Run("lines", func(t *testing.T) { t.Parallel(); crashStream(t, openLines) })
}

func crashStream(t *testing.T, open func(t *testing.T, url, token string) intentStream) {
	const n = 1000
	data, token := newData(t)
	plans := manyEvaluations(t)
	p := start(t, data, plans)
	register(t, p.url, token)
	all := make(map[string]bool)
	for round := range rounds(2, 20) {
		intents := make([]intent, n)
		for i := range intents {
			intents[i] = newIntent("bot", "deploy", "k8s/staging/web")
			all[intents[i].id] = true
		}
		in := func() func() intent {
			i := -1
			return func() intent { i++; return intents[i] }
		}
		var count atomic.Int64
		var answered map[string]lineAnswer
		done := make(chan struct{})
		stream := open(t, p.url, token)
		go func() {
			defer close(done)
			answered = streamIntents(t, stream, n, in(), &count)
		}()
		waitFor(t, "answers", func() bool { return count.Load() >= int64(100*(round%4)+10) || t.Failed() })
		if round%2 == 0 {
			p.kill(t)
		} else {
			p.stop(t)
		}
		<-done
		p = start(t, data, plans)

		again := streamIntents(t, open(t, p.url, token), n, in(), &count)
		if len(again) != n {
			t.Errorf("round %d: %d of %d intents are answered after the start", round, len(again), n)
		}
		for id, first := range answered {
			if got := again[id]; got.DecisionID != first.DecisionID || !got.Replayed {
				t.Errorf("round %d: %s was answered with %+v, and then with %+v", round, id, first, got)
			}
		}
		t.Logf("round %d: %d of %d were answered before the end", round, len(answered), n)
		if rows := history(t, p.url, token); len(rows) != len(all) {
			t.Errorf("round %d: %d rows, want %d", round, len(rows), len(all))
		}
	}
	p.stop(t)
	if code, said := verifyData(t, data); code != exitOK {
		t.Errorf("writ verify = exit code %d, %s", code, said)
	}
}
