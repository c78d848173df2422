package mongodb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/topology"
)

// retry runs f again while its primary goes away and ctx lasts. The driver does not retry
// commands that make collections and indexes.
func retry(ctx context.Context, f func(context.Context) error) error {
	for {
		if err := f(ctx); !primaryGone(err) || !pause(ctx, 6) {
			return err
		}
	}
}

// stateChanges are the server's codes of operations that end because the member shuts
// down or is no longer the primary.
var stateChanges = []int{91, 189, 10107, 11600, 11602, 13435, 13436}

// primaryGone reports that a command was lost with the primary that it was sent to.
// The driver makes no mongo.ServerError of the error of an index.
func primaryGone(err error) bool {
	if mongo.IsNetworkError(err) {
		return true
	}
	var w driver.WriteCommandError
	if errors.As(err, &w) {
		return w.WriteConcernError != nil && slices.Contains(stateChanges, int(w.WriteConcernError.Code))
	}
	var e mongo.ServerError
	return errors.As(err, &e) && slices.ContainsFunc(stateChanges, e.HasErrorCode)
}

// whyNot adds advice to an error of Open if the set had no primary.
func whyNot(err error, waited time.Duration) error {
	var none topology.ServerSelectionError
	if !errors.As(err, &none) {
		return err
	}
	return fmt.Errorf("the replica set had no primary that could be reached for %v: start a majority of its "+
		"members, or correct the URI: %w",
		waited.Round(100*time.Millisecond), err)
}
