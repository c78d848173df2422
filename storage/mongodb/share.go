package mongodb

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"slices"

	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// keyDigests are digests of the keys that all replicas of a deployment share, and a replica's account of itself.
type keyDigests struct {
	Secret  []byte   `bson:"o"` // of the secret of operator tokens
	Scrub   [][]byte `bson:"s"` // of the scrub keys
	Replica Replica  `bson:"r"`
}

// Replica is a process that uses the database.
type Replica struct {
	Name    string `bson:"n"`
	Version string `bson:"v"`
}

// Replicas returns the replicas that run, in the order of their slots.
func (s *database) Replicas(ctx context.Context) (all []Replica, err error) {
	rows, err := find[slotRow](ctx, s.slots(), doc(slotHolder, doc("$ne", "")), options.Find().SetSort(doc("_id", 1)))
	for _, row := range rows {
		r := Replica{Name: "unnamed", Version: "an unknown version"}
		if row.Keys != nil && row.Keys.Replica.Version != "" {
			r = row.Keys.Replica
		}
		all = append(all, r)
	}
	return all, err
}

func digestOf(what string, key []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("writ " + what))
	return mac.Sum(nil)
}

// ShareKeys records in the slot this replica's account of itself, and digests of the keys that all replicas share.
// It compares the digests with the digests of the other replicas that run. It returns an error if no scrub key is
// the same: then identities that one hides the other does not find, or this is another deployment. If the secret
// alone differs, it logs a warning, because the secret may just be replaced.
func (s *Store) ShareKeys(ctx context.Context, me Replica, secret []byte, scrub [][]byte) error {
	own := keyDigests{Replica: me, Secret: digestOf("operator secret", secret)}
	for _, key := range scrub {
		own.Scrub = append(own.Scrub, digestOf("scrub key", key))
	}
	return s.do(ctx, "", "comparing the keys of replicas", func(ctx context.Context) error {
		if _, err := s.slots().UpdateOne(ctx, s.slot.mine(), set(slotKeys, own)); err != nil {
			return err
		}
		rows, err := find[slotRow](ctx, s.slots(), s.slot.used())
		if err != nil {
			return err
		}
		for _, row := range rows {
			if row.Keys == nil || row.Holder == "" {
				continue
			}
			if !slices.ContainsFunc(own.Scrub, row.Keys.hasScrub) {
				return refuse(errors.New("another replica on this database has other scrub keys: give each replica " +
					"of a deployment the same --scrub-key and --operator-secret, and each deployment its own database"))
			}
			if !bytes.Equal(own.Secret, row.Keys.Secret) {
				s.health.log.Warn("another replica has another operator secret, and refuses the tokens of this one: "+
					"give all the same --operator-secret", "slot", row.ID)
			}
		}
		return nil
	})
}

func (k *keyDigests) hasScrub(digest []byte) bool {
	return slices.ContainsFunc(k.Scrub, func(d []byte) bool { return bytes.Equal(d, digest) })
}
