package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"writ/bench/load"
	"writ/storage"
	"writ/storage/mongodb"
	"writ/storage/mongodb/mongotest"
)

// killSwitch measures PATCHes at either of two replicas in turn.
func (b *runner) killSwitch(ctx context.Context, set *mongotest.Set) error {
	var replicas []*server
	for _, name := range []string{"first replica", "second replica"} {
		s, err := b.serve(ctx, name, "replicas", set) // they share the keys of a directory
		if err != nil {
			return err
		}
		replicas = append(replicas, s)
	}
	var agent struct {
		ID string `json:"id"`
	}
	if _, err := replicas[0].call(ctx, http.MethodPost, "/v1/agents", map[string]any{"name": "Bot", "externalId": uuid.NewString()}, &agent); err != nil {
		return err
	}
	if err := patches(ctx, replicas, agent.ID, "idle", b.patches); err != nil {
		return err
	}
	var loads sync.WaitGroup
	loading, enough := context.WithCancel(ctx)
	for _, s := range replicas {
		loads.Go(func() {
			_, err := b.load(loading, s, s.name, load.Options{Conns: 64, Rate: b.beside / 2, Duration: 20 * time.Second})
			if err != nil && loading.Err() == nil {
				fmt.Println(err)
			}
		})
	}
	time.Sleep(3 * time.Second)
	err := patches(ctx, replicas, agent.ID, fmt.Sprintf("beside %.0f decisions/s", b.beside), b.patches)
	loads.Wait()
	enough()
	return err
}

// patches disables an agent and makes it active again, n PATCHes in all, spaced so
// that none waits for the one before.
func patches(ctx context.Context, replicas []*server, agent, name string, n int) error {
	var took []time.Duration
	for i := range n {
		status := []string{"disabled", "active"}[i%2]
		d, err := replicas[i/2%2].call(ctx, http.MethodPatch, "/v1/agents/"+agent+"/status", map[string]any{"status": status}, nil)
		if err != nil {
			return err
		}
		took = append(took, d)
		time.Sleep(20 * time.Millisecond)
	}
	fmt.Printf("PATCH of a kill switch, %s: %s\n", name, percentiles(took))
	return nil
}

// call sends a request with the operator's token, and returns how long the answer took.
func (s *server) call(ctx context.Context, method, path string, body, answer any) (time.Duration, error) {
	data, err := json.Marshal(body)
	if err != nil {
		return 0, err
	}
	req, err := http.NewRequestWithContext(ctx, method, s.url+path, bytes.NewReader(data))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Authorization", "Bearer "+s.operator)
	req.Header.Set("Content-Type", "application/json")
	began := time.Now()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	took := time.Since(began)
	if err != nil || resp.StatusCode/100 != 2 {
		return took, fmt.Errorf("%s %s: %s: %s, %w", method, path, resp.Status, got, err)
	}
	if answer == nil {
		return took, nil
	}
	return took, json.Unmarshal(got, answer)
}

// heard measures when a watcher of a handle hears of another's updates.
func heard(ctx context.Context, set *mongotest.Set, n int) error {
	open := func() (*mongodb.Store, error) {
		return mongodb.Open(ctx, mongodb.Options{URI: set.URI(), Database: "heard"})
	}
	writer, err := open()
	if err != nil {
		return err
	}
	defer writer.Close() //nolint:errcheck // a measurement
	reader, err := open()
	if err != nil {
		return err
	}
	defer reader.Close() //nolint:errcheck // a measurement
	changes := make(chan time.Time, 1)
	stop, err := reader.Watch(storage.Now, func(storage.Change) { changes <- time.Now() })
	if err != nil {
		return err
	}
	defer stop()
	var took, updates []time.Duration
	for i := range n {
		began := time.Now()
		_, err := writer.Update(ctx, organization, func(tx storage.Tx) error {
			_, err := storage.Subscriptions.Put(tx, organization, &storage.Subscription{OrganizationID: organization, Plan: fmt.Sprint(i)})
			return err
		})
		if err != nil {
			return err
		}
		returned := time.Now()
		took = append(took, max(0, (<-changes).Sub(returned)))
		updates = append(updates, returned.Sub(began))
		time.Sleep(5 * time.Millisecond)
	}
	fmt.Printf("an update: %s; heard by another handle after it returned: %s\n", percentiles(updates), percentiles(took))
	return nil
}
