package mongodb

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/connstring"
)

// checkUser refuses a user or a password in the URI with a character that must be escaped. The driver would
// take a part of the password for the name of a host, and print it.
func checkUser(uri string) error {
	user, password := userIn(uri)
	for _, part := range []struct{ name, text string }{{"user", user}, {"password", password}} {
		if i := strings.IndexAny(part.text, "@/?#[]:"); i >= 0 {
			c := part.text[i : i+1]
			return fmt.Errorf("the %s in the URI has an unescaped %s: write it as %s", part.name, c, url.QueryEscape(c))
		}
	}
	return nil
}

// checkOptions refuses options of the URI with which a store can't work, and those that the driver does not
// know and would ignore.
func checkOptions(uri string) error {
	c, err := connstring.Parse(uri)
	if err != nil {
		return err
	}
	if unknown := slices.Sorted(maps.Keys(c.UnknownOptions)); len(unknown) > 0 {
		return fmt.Errorf("the URI has the option %.64q, which is none: correct its name", unknown[0])
	}
	if c.DirectConnection {
		return errors.New("the URI has directConnection=true, with which one member alone is asked: leave it out")
	}
	return nil
}

// namePatience is how long checkName waits for a member.
const namePatience = time.Second

// checkName returns an error if the URI names another replica set than a member is of. The driver would take
// no member for one of the set, and wait. Members that do not answer are not judged.
func checkName(ctx context.Context, config *options.ClientOptions) error {
	if config.ReplicaSet == nil || *config.ReplicaSet == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, namePatience)
	defer cancel()
	names := make(chan string, len(config.Hosts))
	for _, host := range config.Hosts {
		go func() { names <- nameAt(ctx, *config, host) }()
	}
	for range config.Hosts {
		switch name := <-names; name {
		case "":
		case *config.ReplicaSet:
			return nil
		default:
			return fmt.Errorf("the URI has replicaSet=%s, and the replica set there is %s: correct the URI",
				*config.ReplicaSet, name)
		}
	}
	return nil
}

// nameAt returns the name of the replica set of a member, or nothing if the member does not tell it.
func nameAt(ctx context.Context, config options.ClientOptions, host string) string {
	config.Hosts, config.ReplicaSet, config.Direct = []string{host}, nil, new(true)
	config.Monitor, config.PoolMonitor = nil, nil
	client, err := mongo.Connect(&config)
	if err != nil {
		return ""
	}
	defer client.Disconnect(context.WithoutCancel(ctx)) //nolint:errcheck // it has only read
	var hello struct {
		SetName string `bson:"setName"`
	}
	if client.Database("admin").RunCommand(ctx, doc("hello", 1)).Decode(&hello) != nil {
		return ""
	}
	return hello.SetName
}
