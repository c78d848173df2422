// Package receipt seals and verifies the receipts of decisions.
//
// A receipt has the id of a decision, the outcome (allow, deny or approval_required) and a time.
// After this time the decision must not be acted upon. A digest in the receipt covers the grounds
// of the decision. Anyone who holds the public key can verify a receipt offline, with this package
// or by the description below. The package depends on the standard library alone.
//
// A ledger signs whole batches. One Ed25519 signature covers the root of a Merkle tree. Each
// receipt of the batch is a leaf of this tree. A receipt carries the signed head and its own
// inclusion proof, so it can be verified without other receipts. Each head holds the hash of the
// previous head. So the heads form a chain. If a head is later changed, removed or inserted, the
// chain visibly breaks.
//
// # Verifying
//
// [ParseKeys] reads the keys to trust from a JSON Web Key Set. Get this key set from the service
// itself. [Parse] or [ParseResult] reads a receipt, and [Verify] checks the receipt. A key that
// comes with a receipt is never trusted. The errors distinguish a forged receipt ([ErrSignature])
// from an expired receipt ([ErrExpired]). [VerifyPayload] then compares the receipt with the
// decision for which it is presented. [VerifyChain] audits a ledger's heads.
//
// # Canonical JSON
//
// JSON is hashed in the canonical form of RFC 8785, encoded as UTF-8. Receipts use the following
// parts of this form:
//
//   - objects without white space, members sorted by the UTF-16 code units of
//     their names, each name once;
//   - strings in which only these are escaped: \" \\ \b \t \n \f \r, and other
//     characters below U+0020 as \u00 and two lower-case hex digits;
//   - integers in decimal, within ±(2^53-1);
//   - arrays of strings, in their order.
//
// A reader of receipts, heads and keys must refuse duplicate members, invalid UTF-8 and
// lone surrogates. A digest is "sha256:" and the SHA-256 of the canonical form in
// lower-case hex.
//
// # Payload and receipt
//
// The payload is the object
//
//	{approval_id, audit_digest, decision, decision_id, exp, intent_digest, intent_id,
//	 organization_id, policy_id, policy_version, reasons}
//
// in which policy_version and exp (unix seconds) are integers, reasons is an array of strings, and
// all other members are strings. Intent_digest is the digest of the intent. Audit_digest is the
// digest of the decision's row in the history, without the row's members approval, audit_digest,
// receipt and settlement. Older answers and rows have no audit_digest. In that case the payload has
// no audit_digest either. The receipt is the object
//
//	{decision, decision_id, digest, exp, sig, kid}
//
// in which digest is the digest of the payload, kid is the id of the key that signed, and sig is
// described below. Exp is 0 to 2^53-1, written without fraction, exponent or sign. A receipt is
// malformed if it has any other member, or if a member is missing, null or duplicated. From the
// second exp on, a receipt is expired.
//
// # Entries
//
// Other leaves of the same chain are entries. An entry is the canonical JSON of an object whose
// member entry names the kind of the entry: settlement, verdict, retention, change or import. No
// receipt has this member. The leaf of an entry is this JSON. The entry's receipt is the object
// {sig, kid}, which is verified like the receipt of a decision: see [Inclusion]. If a row of the
// history is removed, the hashes of the row's leaves stay.
//
// # Leaf and tree
//
// A receipt's leaf is the canonical JSON of {decision, decision_id, digest, exp, kid}: all members
// of the receipt except sig. The leaves of a batch, in order, form the Merkle tree of RFC 9162 §2.1
// over SHA-256:
//
//	leaf hash = SHA-256(0x00 || leaf)
//	node hash = SHA-256(0x01 || left || right)
//
// The left child of a node over n leaves covers the first k leaves. Here k is the largest power of
// two below n. The root of a single leaf is the hash of that leaf. The root of no leaves is SHA-256
// of nothing. The inclusion proof of a leaf lists the siblings on the way from the leaf to the
// root, the lowest first (RFC 9162 §2.1.3). The proof of a single leaf is empty.
//
// # Head
//
// A batch's head is the following 113 bytes, with integers in big-endian order:
//
//	offset  length
//	     0      13  "writ/head/v1\n"
//	    13      16  chain id, the same in all heads of one ledger
//	    29       8  seq: 1 in the first head, then ascending by 1
//	    37       4  size: the number of leaves
//	    41       8  time: unix milliseconds, signed
//	    49      32  prev: hash of the previous head; zeros in the first
//	    81      32  root: the root of the batch's tree
//
// Ed25519 (RFC 8032, without prehashing) signs these bytes. The hash of a head is SHA-256(0x02 ||
// head). Leaves and nodes are hashed with another first byte. A stored head has three parts: these
// bytes, the 64 bytes of the signature, and the kid of 1 to 256 bytes.
//
// # Sig
//
// A receipt's sig is the base64url encoding (RFC 4648 §5), without padding, of
//
//	offset  length
//	     0       1  version: 1
//	     1      16  chain id
//	    17       8  seq
//	    25       4  size
//	    29       8  time
//	    37      32  prev
//	    69      64  Ed25519 signature of the head
//	   133       4  index of the leaf, from 0
//	   137    32*n  inclusion proof
//
// A sig does not have the root, because the verifier computes the root. A sig has only one valid
// spelling. A verifier must refuse padding, line breaks and unused bits that are not zero. It must
// also refuse an index that is not below size, and a proof whose length does not fit index and
// size. As RFC 8032 §5.1.7 says, it must refuse a signature whose second half is not below the
// order of the group.
//
// To verify a receipt, look up kid among the trusted keys and hash the leaf. Fold the leaf hash
// with the proof into the root. Build the head from the root and sig. Verify the signature over the
// head. Only then compare exp with the clock.
//
// # Keys
//
// Public keys are published as a JSON Web Key Set with kty OKP and crv Ed25519 (RFC 8037). The kid
// of a [Signer] is the RFC 7638 thumbprint: base64url without padding of the SHA-256 of
// {"crv":"Ed25519","kty":"OKP","x":"…"}. A verifier takes the kid from the key set and does not
// recompute the thumbprint. A retired key stays in the set as long as its receipts must verify.
// Private keys are stored as PKCS#8 in PEM.
//
// # Example
//
// The private key is the 32 bytes 00 01 02 … 1f. The key set is
//
//	{"keys":[{"alg":"EdDSA","crv":"Ed25519",
//	  "kid":"1IG2tMH7J2wbJZnOf8LJzQitKf7LMvoAElsuDMVM54Y",
//	  "kty":"OKP","use":"sig",
//	  "x":"A6EHv_POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg"}]}
//
// (line breaks in this section are for reading only). This is the intent, shortened to two members,
// and the digest of the intent:
//
//	{"action_type":"deploy","agent_id":"ci"}
//	sha256:271dbe16a9898f403ef7fb170a9a328dadb98f499b50d64ad66fe676031cb6e5
//
// This is the payload, and the digest of the payload:
//
//	{"decision":"allow",
//	 "decision_id":"0198f3c2-7a10-7c3e-9d41-5b1f6f0a9e37",
//	 "exp":1800000300,
//	 "intent_digest":"sha256:271dbe16a9898f403ef7fb170a9a328dadb98f499b50d64ad66fe676031cb6e5",
//	 "intent_id":"7d9f1c1e-3b5a-4f5e-8a67-0d6f0a4b2c11",
//	 "organization_id":"acme",
//	 "policy_id":"2f0c3c64-94f4-4b8e-bb0b-0f6f3f3f9d20",
//	 "policy_version":3,
//	 "reasons":["policy.allow: the policy allows this action"]}
//	sha256:b6ac64c07aebfa529a11e66abf79d5d2e382a18cd21751607fde6ffdf3bbeb0b
//
// This is the leaf, and the hash of the leaf:
//
//	{"decision":"allow",
//	 "decision_id":"0198f3c2-7a10-7c3e-9d41-5b1f6f0a9e37",
//	 "digest":"sha256:b6ac64c07aebfa529a11e66abf79d5d2e382a18cd21751607fde6ffdf3bbeb0b",
//	 "exp":1800000300,
//	 "kid":"1IG2tMH7J2wbJZnOf8LJzQitKf7LMvoAElsuDMVM54Y"}
//	4a2d5970d36b9f6797b5ebc4a6514f56bd00e52e4cf5b656e6f58040e2c8a3ee
//
// This leaf is leaf 0 of a batch of two. Leaf 1 is
//
//	{"decision":"deny",
//	 "decision_id":"0198f3c2-7a10-7c3e-9d41-5b1f6f0a9e38",
//	 "digest":"sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
//	 "exp":1800000300,
//	 "kid":"1IG2tMH7J2wbJZnOf8LJzQitKf7LMvoAElsuDMVM54Y"}
//
// These are the hash of leaf 1, which is the proof of leaf 0, and the root of both:
//
//	79871278c4be1eecec836af66e9272ed8202dbe7749357faca11dcfcc0f5a0b4
//	1caa5ebe7cf643e6499facda847a3fefc1ad9b616eae5910bd29a60afb4b4399
//
// The head is the first of chain "example-chain-01", at 1800000000123. These are the head's bytes,
// hash and signature:
//
//	777269742f686561642f76310a  6578616d706c652d636861696e2d3031
//	0000000000000001  00000002  000001a3185c507b
//	0000000000000000000000000000000000000000000000000000000000000000
//	1caa5ebe7cf643e6499facda847a3fefc1ad9b616eae5910bd29a60afb4b4399
//
//	2f5960616ccbf3b2731042a855358be36b3cbf2c5255637f8571cd26ec389082
//
//	310073f872a708da7bcdd676c1d79a628aca01dfe29a25e62f18e62a8be707a7
//	39a1b3475537682e882b04c84776fab51eb1617b7a7ad3fbbeb7136ad1faca01
//
// This is the receipt:
//
//	{"decision":"allow",
//	 "decision_id":"0198f3c2-7a10-7c3e-9d41-5b1f6f0a9e37",
//	 "digest":"sha256:b6ac64c07aebfa529a11e66abf79d5d2e382a18cd21751607fde6ffdf3bbeb0b",
//	 "exp":1800000300,
//	 "sig":"AWV4YW1wbGUtY2hhaW4tMDEAAAAAAAAAAQAAAAIAAAGjGFxQewAAAAAAAAAA
//	        AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAMQBz-HKnCNp7zdZ2wdeaYorKAd_i
//	        miXmLxjmKovnB6c5obNHVTdoLogrBMhHdvq1HrFhe3p60_u-txNq0frKAQAA
//	        AAB5hxJ4xL4e7OyDavZuknLtggLb53STV_rKEdz8wPWgtA",
//	 "kid":"1IG2tMH7J2wbJZnOf8LJzQitKf7LMvoAElsuDMVM54Y"}
//
// A server lists this head as
//
//	{"chain":"6578616d706c652d636861696e2d3031","seq":1,"size":2,
//	 "time":1800000000123,
//	 "prev":"0000000000000000000000000000000000000000000000000000000000000000",
//	 "root":"1caa5ebe7cf643e6499facda847a3fefc1ad9b616eae5910bd29a60afb4b4399",
//	 "sig":"MQBz-HKnCNp7zdZ2wdeaYorKAd_imiXmLxjmKovnB6c5obNHVTdoLogrBMhHdvq1
//	        HrFhe3p60_u-txNq0frKAQ",
//	 "kid":"1IG2tMH7J2wbJZnOf8LJzQitKf7LMvoAElsuDMVM54Y"}
//
// Further examples, valid and invalid, are in testdata/vectors.json.
package receipt
