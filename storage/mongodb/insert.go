package mongodb

import (
	"context"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"writ/storage"
)

// insertRows inserts the rows of records. It makes the commands itself: the driver
// would copy each row three times and decode its _id. A command that has [storage.MaxBody]
// bytes gets no further row: the server takes 16 MiB.
func (s *Store) insertRows(ctx context.Context, records []*storage.Record, ids decisionIDs) error {
	d := make(document, 0, 1024*(len(records)+1))
	for len(records) > 0 {
		d = d[:0]
		command := d.start("")
		d.text("insert", recordsName)
		rows, b := bsoncore.AppendArrayElementStart(d, "documents")
		d = b
		n := 0
		for n < len(records) && len(d) < storage.MaxBody {
			d.row(indexKey(n), records[n], ids[records[n]])
			n++
		}
		d.end(rows)
		d.end(command)
		var reply struct {
			N int `bson:"n"`
		}
		if err := s.db.RunCommand(ctx, bson.Raw(d)).Decode(&reply); err != nil {
			return err
		}
		if reply.N != n {
			return fmt.Errorf("%d of %d rows were inserted", reply.N, n)
		}
		records = records[n:]
	}
	return nil
}
