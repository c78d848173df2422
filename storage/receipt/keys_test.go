package receipt

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// This is the example key of RFC 8037, appendices A.2 and A.3.
const (
	rfc8037X          = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"
	rfc8037Thumbprint = "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"
)

func TestKeyIDOfRFC8037(t *testing.T) {
	x, err := base64.RawURLEncoding.DecodeString(rfc8037X)
	must(t, err)
	if got := KeyID(x); got != rfc8037Thumbprint {
		t.Errorf("KeyID = %s, want %s", got, rfc8037Thumbprint)
	}
}

func TestJWKSRoundTrip(t *testing.T) {
	a, b := testSigner(1), testSigner(2)
	keys := keysOf(t, a.Public(), b.Public(), a.Public())
	data := keys.JWKS()
	back, err := ParseKeys(data)
	if err != nil {
		t.Fatalf("ParseKeys(%s) = %v", data, err)
	}
	want := []string{a.KeyID(), b.KeyID()}
	slices.Sort(want)
	if got := back.IDs(); !slices.Equal(got, want) {
		t.Errorf("IDs = %v, want %v", got, want)
	}
	if got := back.JWKS(); !bytes.Equal(got, data) {
		t.Errorf("JWKS = %s, want %s", got, data)
	}
	if canonical(t, data) != string(data) {
		t.Errorf("JWKS is not canonical JSON: %s", data)
	}
}

func TestParseKeysTakes(t *testing.T) {
	ed := `"kty":"OKP","crv":"Ed25519","x":"` + rfc8037X + `"`
	for _, tc := range []struct {
		name, keys string
		want       []string
	}{
		{"least members", `{` + ed + `,"kid":"a"}`, []string{"a"}},
		{"kid as it is given", `{` + ed + `,"kid":"2026-11 / é"}`, []string{"2026-11 / é"}},
		{"unknown members", `{` + ed + `,"kid":"a","x5c":[],"nbf":1}`, []string{"a"}},
		{"fully specified alg", `{` + ed + `,"kid":"a","alg":"Ed25519","use":"sig","key_ops":["verify"]}`, []string{"a"}},
		{"one key under two kids", `{` + ed + `,"kid":"a"},{` + ed + `,"kid":"b"}`, []string{"a", "b"}},
		{"other types beside it", `{"kty":"RSA","kid":"a","n":"AQAB","e":"AQAB"},{"kty":"OKP","crv":"X25519","x":"AA"},{` + ed + `,"kid":"a"}`, []string{"a"}},
		{"a key for encryption beside it", `{` + ed + `,"kid":"e","use":"enc"},{` + ed + `,"kid":"s"}`, []string{"s"}},
		{"a key for other operations beside it", `{` + ed + `,"kid":"e","key_ops":["sign"]},{` + ed + `,"kid":"s"}`, []string{"s"}},
	} {
		keys, err := ParseKeys([]byte(`{"keys":[` + tc.keys + `]}`))
		if err != nil || !slices.Equal(keys.IDs(), tc.want) {
			t.Errorf("%s: ParseKeys = %v, %v, want %v", tc.name, keys.IDs(), err, tc.want)
		}
	}
}

func TestParseKeysRefuses(t *testing.T) {
	key := func(kid, x, more string) string {
		return fmt.Sprintf(`{"kty":"OKP","crv":"Ed25519","kid":%q,"x":%q%s}`, kid, x, more)
	}
	set := func(keys ...string) string { return `{"keys":[` + strings.Join(keys, ",") + `]}` }
	good := key("a", rfc8037X, "")
	for _, tc := range []struct{ name, in, because string }{
		{"not JSON", `keys`, "looking for beginning of value"},
		{"data after it", set(good) + set(good), "after top-level value"},
		{"a bare key", good, "no array keys"},
		{"keys not an array", `{"keys":{}}`, "no array keys"},
		{"case variant", `{"Keys":[` + good + `]}`, "no array keys"},
		{"empty", set(), "no Ed25519 key"},
		{"only other types", set(`{"kty":"RSA","kid":"a"}`), "no Ed25519 key"},
		{"kty in another case", set(strings.Replace(good, "OKP", "okp", 1)), "no Ed25519 key"},
		{"a string for a key", set(good, `"x"`), "key 1: not an object"},
		{"private key", set(key("a", rfc8037X, `,"d":"nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A"`)), "key 0: is a private key"},
		{"private key of another type", set(good, `{"kty":"RSA","d":"AQAB"}`), "key 1: is a private key"},
		{"private key that is null", set(key("a", rfc8037X, `,"d":null`)), "is a private key"},
		{"duplicate kid", set(good, key("a", rfc8037X, "")), `key 1: duplicate kid "a"`},
		{"duplicate member", set(key("a", rfc8037X, `,"x":"AA"`)), `duplicate member "x"`},
		{"no kid", set(`{"kty":"OKP","crv":"Ed25519","x":"` + rfc8037X + `"}`), "kid is not"},
		{"kid a number", set(`{"kty":"OKP","crv":"Ed25519","kid":1,"x":"` + rfc8037X + `"}`), "kid is not"},
		{"no x", set(`{"kty":"OKP","crv":"Ed25519","kid":"a"}`), "0 bytes"},
		{"short", set(key("a", rfc8037X[:40], "")), "30 bytes"},
		{"long", set(key("a", rfc8037X+"A", "")), "33 bytes"},
		{"padding", set(key("a", rfc8037X+"=", "")), "not canonical"},
		{"line break", set(key("a", rfc8037X[:20]+"\n"+rfc8037X[20:], "")), "not canonical"},
		{"trailing bits", set(key("a", rfc8037X[:42]+"p", "")), "not canonical"},
		{"alg of another type", set(key("a", rfc8037X, `,"alg":"HS256"`)), `alg "HS256"`},
		{"alg none", set(key("a", rfc8037X, `,"alg":"none"`)), `alg "none"`},
		{"alg null", set(key("a", rfc8037X, `,"alg":null`)), `alg "null"`},
		{"small order", set(key("a", base64.RawURLEncoding.EncodeToString(append([]byte{1}, make([]byte, 31)...)), "")), "small order"},
	} {
		keys, err := ParseKeys([]byte(tc.in))
		if err == nil || !strings.Contains(err.Error(), tc.because) || len(keys.byID) != 0 {
			t.Errorf("%s: ParseKeys = %v, %v, want an error with %q", tc.name, keys.IDs(), err, tc.because)
		}
	}
}

// TestSmallOrderKeyIsRefusedBecauseItForges checks that the key set refuses the identity as a
// public key. With this key, R = [S]B is a valid signature of any message, and the standard library
// accepts it.
func TestSmallOrderKeyIsRefusedBecauseItForges(t *testing.T) {
	identity := append([]byte{1}, make([]byte, 31)...)
	// S is 0, so R is the identity.
	sig := append(bytes.Clone(identity), make([]byte, 32)...)
	if !ed25519.Verify(identity, []byte("anything"), sig) {
		t.Error("the forgery that this test is about no longer works: is checkPublic still needed?")
	}
	if _, err := NewKeys(identity); err == nil {
		t.Error("NewKeys(identity) = nil error")
	}
	for _, y := range []string{
		"0000000000000000000000000000000000000000000000000000000000000080",
		"ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
		"26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
		"c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
	} {
		pub, err := hex.DecodeString(y)
		must(t, err)
		if _, err := NewKeys(pub); err == nil {
			t.Errorf("NewKeys(%s) = nil error", y)
		}
	}
}

func TestKeysAreCopied(t *testing.T) {
	s := testSigner(1)
	pub := s.Public()
	keys := keysOf(t, pub)
	want := keys.JWKS()
	pub[0] ^= 1
	if got := keys.JWKS(); !bytes.Equal(got, want) {
		t.Error("changing the slice given to NewKeys changes the set")
	}
	if bytes.Equal(pub, s.Public()) {
		t.Error("Public returns the signer's own memory")
	}
}

func TestSignerHidesItsKey(t *testing.T) {
	priv := testKey(7)
	s := NewSigner(priv)
	seed := fmt.Sprintf("%d", priv.Seed())
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%x", "%d", "%q"} {
		got := fmt.Sprintf(format, s)
		if strings.Contains(got, seed[1:10]) || strings.Contains(got, "070707") || !strings.Contains(got, s.KeyID()) {
			t.Errorf("Sprintf(%s) = %s, want the key id alone", format, got)
		}
	}
	if data, err := json.Marshal(map[string]any{"signer": s}); err != nil || string(data) != `{"signer":{}}` {
		t.Errorf("json.Marshal(signer) = %s, %v, want {} as the signer", data, err)
	}
}

// TestSignerDerivesThePublicHalf checks that a signer ignores the public half of its private key.
// Two signatures of one message with different public halves would reveal the secret scalar.
func TestSignerDerivesThePublicHalf(t *testing.T) {
	mixed := append(testKey(1).Seed(), testKey(2)[32:]...)
	if got, want := NewSigner(mixed).KeyID(), testSigner(1).KeyID(); got != want {
		t.Errorf("KeyID of a mixed key = %s, want %s", got, want)
	}
	defer func() {
		if recover() == nil {
			t.Error("NewSigner(short key) does not panic")
		}
	}()
	NewSigner(make([]byte, sha512.Size-1))
}

func TestDecision_Receipts_GivenKeysAloneAreTrusted(t *testing.T) {
	rs := vectorReceipts(1, 1)
	seal(t, testSigner(1), Chain{}, rs)
	if err := Verify(rs[0], Keys{}, benchTime); !errors.Is(err, ErrUnknownKey) {
		t.Errorf("Verify with no keys = %v, want ErrUnknownKey", err)
	}
}

func FuzzParseKeys(f *testing.F) {
	f.Add(keysOf(f, testSigner(1).Public(), testSigner(2).Public()).JWKS())
	f.Add([]byte(`{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"\ud83d\ude00","x":"` + rfc8037X + `","d":"x"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		keys, err := ParseKeys(data)
		if err != nil {
			return
		}
		back, err := ParseKeys(keys.JWKS())
		if err != nil || !slices.Equal(back.IDs(), keys.IDs()) {
			t.Fatalf("ParseKeys(JWKS of %q) = %v, %v, want %v", data, back.IDs(), err, keys.IDs())
		}
	})
}

func TestWithKeepsWhatIsTrusted(t *testing.T) {
	parse := func(doc string) Keys {
		t.Helper()
		keys, err := ParseKeys([]byte(doc))
		if err != nil {
			t.Fatalf("ParseKeys(%s): %v", doc, err)
		}
		return keys
	}
	const (
		first  = `{"kty":"OKP","crv":"Ed25519","kid":"a","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}`
		second = `{"kty":"OKP","crv":"Ed25519","kid":"b","x":"PUAXw-hDiVqStwqnTRt-vJyYLM8uxJaMwM1V8Sr0Zgw"}`
		forged = `{"kty":"OKP","crv":"Ed25519","kid":"a","x":"PUAXw-hDiVqStwqnTRt-vJyYLM8uxJaMwM1V8Sr0Zgw"}`
	)
	a := parse(`{"keys":[` + first + `]}`)
	both := parse(`{"keys":[` + first + `,` + second + `]}`)
	if got, want := a.With(parse(`{"keys":[`+second+`]}`)).JWKS(), both.JWKS(); !bytes.Equal(got, want) {
		t.Errorf("With(another key) = %s, want %s", got, want)
	}
	if got, want := a.With(parse(`{"keys":[`+forged+`]}`)).JWKS(), a.JWKS(); !bytes.Equal(got, want) {
		t.Errorf("With(the same id) = %s, want %s", got, want)
	}
	if got, want := (Keys{}).With(a).JWKS(), a.JWKS(); !bytes.Equal(got, want) {
		t.Errorf("Keys{}.With = %s, want %s", got, want)
	}
	if got, want := a.With(Keys{}).JWKS(), a.JWKS(); !bytes.Equal(got, want) {
		t.Errorf("With(nothing) = %s, want %s", got, want)
	}
}
