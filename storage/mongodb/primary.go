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

// retry calls f again while f fails because the primary is gone, until ctx ends. The driver does
// not retry the commands that make collections and indexes.
func retry(ctx context.Context, f func(context.Context) error) error {
	for {
		if err := f(ctx); !primaryGone(err) || !pause(ctx, 6) {
			return err
		}
	}
}

// stateChanges are the server's error codes for operations on a member that shuts down or is no
// longer the primary.
var stateChanges = []int{91, 189, 10107, 11600, 11602, 13435, 13436}

// primaryGone reports whether a command failed because its primary is gone. If an index can't be
// made, the driver's error is no mongo.ServerError.
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

// whyNot adds advice to an error of Open or OpenSnapshot if the replica set had no primary.
func whyNot(err error, waited time.Duration) error {
	var none topology.ServerSelectionError
	if !errors.As(err, &none) {
		return err
	}
	return fmt.Errorf("the replica set had no primary that could be reached for %v: start a majority of its "+
		"members, or correct the URI: %w",
		waited.Round(100*time.Millisecond), err)
}
