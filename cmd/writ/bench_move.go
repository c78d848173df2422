package main

import (
	"context"
	"os"

	"writ.example/writ/bench"
)

type benchMoveCmd struct {
	Rows       []int  `default:"100000,1000000" placeholder:"N,..." help:"Numbers of rows."`
	Dir        string `placeholder:"DIR" help:"Keep what is exported there: a first run fills it, a second measures."`
	MongoDBURI string `name:"mongodb-uri" placeholder:"URI" help:"Replica set to import into, too, each time into a new database."`
}

func (c *benchMoveCmd) Help() string {
	return `Has a server decide, and then exports the organization, imports it twice, and verifies
it: rows a second, processor time a row, and the peak of memory of each process.`
}

func (c *benchMoveCmd) Run(ctx context.Context, s streams) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	m := bench.Move{Binary: self, Keep: c.Dir, MongoDB: c.MongoDBURI, Say: s.say}
	for _, rows := range c.Rows {
		if err := m.Run(ctx, rows); err != nil {
			return err
		}
	}
	return nil
}
