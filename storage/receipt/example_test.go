package receipt_test

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"writ.example/writ/storage/receipt"
)

// A client verifies the answer of an evaluation. It has the key set from the service's
// /.well-known/jwks.json.
func Example_verify() {
	jwks := `{"keys":[{"alg":"EdDSA","crv":"Ed25519","kid":"1IG2tMH7J2wbJZnOf8LJzQitKf7LMvoAElsuDMVM54Y",
		"kty":"OKP","use":"sig","x":"A6EHv_POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg"}]}`
	answer := `{"ok":true,"approved":true,
		"reasons":["policy.allow: the policy allows this action"],
		"decision_id":"0198f3c2-7a10-7c3e-9d41-5b1f6f0a9e37",
		"receipt":{"decision":"allow","decision_id":"0198f3c2-7a10-7c3e-9d41-5b1f6f0a9e37",
			"digest":"sha256:b6ac64c07aebfa529a11e66abf79d5d2e382a18cd21751607fde6ffdf3bbeb0b","exp":1800000300,
			"sig":"AWV4YW1wbGUtY2hhaW4tMDEAAAAAAAAAAQAAAAIAAAGjGFxQewAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAMQBz-HKnCNp7zdZ2wdeaYorKAd_imiXmLxjmKovnB6c5obNHVTdoLogrBMhHdvq1HrFhe3p60_u-txNq0frKAQAAAAB5hxJ4xL4e7OyDavZuknLtggLb53STV_rKEdz8wPWgtA",
			"kid":"1IG2tMH7J2wbJZnOf8LJzQitKf7LMvoAElsuDMVM54Y"}}`

	keys, err := receipt.ParseKeys([]byte(jwks))
	if err != nil {
		log.Fatal(err)
	}
	result, err := receipt.ParseResult([]byte(answer))
	if err != nil {
		log.Fatal(err)
	}
	now := time.Unix(1800000299, 0)
	fmt.Println(result.Receipt.Decision, receipt.Verify(result.Receipt, keys, now))

	later := now.Add(time.Minute)
	fmt.Println(errors.Is(receipt.Verify(result.Receipt, keys, later), receipt.ErrExpired))

	result.Receipt.Exp += 3600
	fmt.Println(receipt.Verify(result.Receipt, keys, now))

	// The payload has only values that the client already knows, and no value from the receipt.
	intent := jsontext.Value(`{"agent_id": "ci", "action_type": "deploy"}`)
	if err := intent.Canonicalize(); err != nil {
		log.Fatal(err)
	}
	result.Receipt.Exp -= 3600
	fmt.Println(receipt.VerifyPayload(result.Receipt, receipt.Payload{
		OrganizationID: "acme",
		IntentID:       "7d9f1c1e-3b5a-4f5e-8a67-0d6f0a4b2c11",
		IntentDigest:   receipt.DigestBytes(intent),
		PolicyID:       "2f0c3c64-94f4-4b8e-bb0b-0f6f3f3f9d20",
		PolicyVersion:  4, // a false claim: the receipt says 3
		Decision:       result.Receipt.Decision,
		DecisionID:     result.Receipt.DecisionID,
		Reasons:        result.Reasons,
		Exp:            result.Receipt.Exp,
	}))
	// Output:
	// allow <nil>
	// true
	// receipt: signature does not verify
	// receipt: payload does not match: digest
}

// A ledger seals a batch of receipts.
func ExampleSigner_Seal() {
	signer := receipt.NewSigner(ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)))
	tip := receipt.Chain{ID: [16]byte([]byte("example-chain-01"))}
	batch := []receipt.Receipt{
		{Decision: receipt.Allow, DecisionID: "a", Digest: receipt.DigestBytes([]byte(`{}`)), Exp: 1800000300},
		{Decision: receipt.Deny, DecisionID: "b", Digest: receipt.DigestBytes([]byte(`[]`)), Exp: 1800000300},
	}

	leaves := make([][32]byte, len(batch))
	for i := range batch {
		batch[i].KeyID = signer.KeyID()
		leaves[i] = batch[i].LeafHash()
	}
	head, sigs, _ := signer.Seal(tip, time.Unix(1800000000, 0), leaves)
	for i := range batch {
		batch[i].Sig = sigs[i]
	}
	// Once head and batch are durable, advance the tip:
	tip = tip.Next(head.Head)

	keys, err := receipt.NewKeys(signer.Public())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(tip.Seq, receipt.Verify(batch[0], keys, time.Unix(1800000000, 0)), receipt.Verify(batch[1], keys, time.Unix(1800000000, 0)))
	// Output: 1 <nil> <nil>
}
