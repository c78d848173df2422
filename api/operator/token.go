// Package operator verifies the tokens of operators. The tokens are JWTs. The deployment's identity
// provider signs them with one pinned algorithm. The package follows the provider's key rotation.
// No other package imports jwx.
package operator

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jws"

	"writ.example/writ/engine/condition"
	"writ.example/writ/engine/resource"
)

// These are the algorithms of operator tokens. A deployment pins one of them. The algorithm in a
// token's header is only compared with the pinned algorithm.
const (
	algHS256 = "HS256"
	algRS256 = "RS256"
	algES256 = "ES256"
	algEdDSA = "EdDSA"
)

// keyBits is the least length of a key in bits, for algorithms without a fixed length (RFC 7518
// §3.2 and §3.3).
var keyBits = map[string]int{algHS256: 256, algRS256: 2048}

func checkSecret(secret []byte) error {
	if least := keyBits[algHS256] / 8; len(secret) < least {
		return fmt.Errorf("the HS256 secret has %d bytes, want at least %d", len(secret), least)
	}
	return nil
}

const (
	// leeway is the tolerated difference between clocks.
	leeway = 30 * time.Second
	// latestExpiry is a time in the year 10680, in Unix seconds. A later time could overflow a
	// time.Time.
	latestExpiry = 1 << 38
)

// tokenClaims are the claims that writ reads from an operator token. The times are Unix seconds.
type tokenClaims struct {
	OrgID     string  `json:"org_id"`
	Subject   string  `json:"sub"`
	ExpiresAt float64 `json:"exp"`
	IssuedAt  float64 `json:"iat,omitzero"`
	NotBefore float64 `json:"nbf,omitzero"`
}

// Config says which operator tokens (JWTs) are accepted. The zero Config accepts none.
type Config struct {
	// Alg is the only algorithm that is accepted: HS256, RS256, ES256 or EdDSA.
	Alg string
	// Secret is the key of HS256. It has at least 32 bytes.
	Secret []byte
	// JWKS is the path or the http(s) URL of the public keys for the other algorithms. It is read
	// again every five minutes. A token with an unknown key id also causes a read, at most every
	// ten seconds.
	JWKS string
	// Client fetches JWKS. If it is nil, a client with a timeout is used.
	Client *http.Client
}

func (c Config) check() error {
	switch c.Alg {
	case "":
		if len(c.Secret) > 0 || c.JWKS != "" {
			return errors.New("a key without an algorithm: pin one of HS256, RS256, ES256, EdDSA")
		}
	case algHS256:
		if c.JWKS != "" {
			return errors.New("HS256 takes a secret, not a key set")
		}
		if err := checkSecret(c.Secret); err != nil {
			return err
		}
	case algRS256, algES256, algEdDSA:
		if len(c.Secret) > 0 {
			return fmt.Errorf("%s takes a key set, not a secret", c.Alg)
		}
		if c.JWKS == "" {
			return fmt.Errorf("%s needs a key set", c.Alg)
		}
	default:
		return fmt.Errorf("algorithm %q: want HS256, RS256, ES256 or EdDSA", c.Alg)
	}
	return nil
}

// Verifier verifies operator tokens. [Open] makes it.
type Verifier struct {
	alg    jwa.SignatureAlgorithm
	secret []byte // for HS256
	keys   *keys  // for the other algorithms
	now    func() time.Time
}

// Open returns a verifier of the tokens that cfg accepts, or nil if cfg accepts none. It reads the
// keys. A file that cannot be read is an error. A URL that cannot be read is no error, because the
// URL's server may start later than this process.
func Open(ctx context.Context, cfg Config, now func() time.Time, log *slog.Logger) (*Verifier, error) {
	if err := cfg.check(); err != nil {
		return nil, fmt.Errorf("operator tokens: %w", err)
	}
	if cfg.Alg == "" {
		return nil, nil
	}
	alg, _ := jwa.LookupSignatureAlgorithm(cfg.Alg) // check has verified that the algorithm is known
	v := &Verifier{alg: alg, secret: cfg.Secret, now: now}
	if cfg.Alg == algHS256 {
		return v, nil
	}
	var err error
	v.keys, err = newKeys(ctx, cfg, now, log)
	return v, err
}

// Run reads the keys regularly until ctx ends. A verifier with a secret has no keys to read; Run
// then returns at once.
func (v *Verifier) Run(ctx context.Context) {
	if v != nil && v.keys != nil {
		v.keys.run(ctx)
	}
}

// Generation returns a number that changes when the keys change. Every verified token must then be
// verified again.
func (v *Verifier) Generation() uint64 {
	if v.keys == nil {
		return 0
	}
	return v.keys.generation()
}

// Operator is the operator whom a token identifies. The token is valid until Expires.
type Operator struct {
	Organization, Subject string
	Expires               time.Time
}

// Verify checks a token and returns its operator.
func (v *Verifier) Verify(ctx context.Context, token string) (Operator, error) {
	claims, err := v.claims(ctx, token)
	if err == nil {
		err = claims.check(v.now())
	}
	if err != nil {
		return Operator{}, fmt.Errorf("verifying an operator token: %w", err)
	}
	return Operator{
		Organization: claims.OrgID, Subject: claims.Subject,
		Expires: time.Unix(int64(claims.ExpiresAt), 0).Add(leeway),
	}, nil
}

// claims returns the claims of a token with a valid signature. A repeated name is an error, and
// names are compared exactly. Some issuers let their users add claims. Such a claim must not be
// able to replace org_id or exp.
func (v *Verifier) claims(ctx context.Context, token string) (claims tokenClaims, err error) {
	var header []byte
	// the library also accepts padding and the alphabet of standard base64
	for _, part := range slices.Backward(strings.Split(token, ".")) {
		if header, err = base64.RawURLEncoding.Strict().DecodeString(part); err != nil {
			return claims, err
		}
	}
	var named struct {
		KeyID string `json:"kid"`
	}
	if err := json.Unmarshal(header, &named); err != nil {
		return claims, err
	}
	var key any = v.secret
	if v.keys != nil {
		if key, err = v.keys.key(ctx, named.KeyID); err != nil {
			return claims, err
		}
	}
	payload, err := jws.VerifyCompactFast(key, []byte(token), v.alg) // it refuses "crit" and every other algorithm
	if err != nil {
		return claims, err
	}
	return claims, json.Unmarshal(payload, &claims)
}

func (c *tokenClaims) check(now time.Time) error {
	at, late := float64(now.UnixNano())/1e9, leeway.Seconds()
	switch {
	case c.ExpiresAt <= 0 || c.ExpiresAt > latestExpiry:
		return errors.New("exp is required, in seconds since 1970")
	case at >= math.Trunc(c.ExpiresAt)+late:
		return errors.New("it has expired")
	case at < max(math.Trunc(c.NotBefore), math.Trunc(c.IssuedAt))-late:
		return errors.New("it is not valid yet")
	}
	if err := CheckName(c.OrgID, condition.MaxName); err != nil {
		return fmt.Errorf("org_id %w", err)
	}
	if strings.TrimSpace(c.OrgID) != c.OrgID {
		return errors.New("org_id must not start or end with white space")
	}
	if err := CheckName(c.Subject, condition.MaxLabel); err != nil {
		return fmt.Errorf("sub %w", err)
	}
	return nil
}

// CheckName returns an error if s is not a valid name of an organization, a subject or an agent.
func CheckName(s string, maxLen int) error {
	if s == "" || utf8.RuneCountInString(s) > maxLen || !utf8.ValidString(s) {
		return fmt.Errorf("must have 1 to %d characters", maxLen)
	}
	for _, r := range s {
		if unicode.IsControl(r) {
			return errors.New("must not have control characters")
		}
	}
	if r, found := resource.FindInvisible(s); found {
		return fmt.Errorf("must not have the invisible character %U", r)
	}
	return nil
}

// Sign returns an HS256 operator token that gives subject full access to org. The token is valid
// from now for ttl. secret must be the secret in the server's configuration.
func Sign(secret []byte, org, subject string, now time.Time, ttl time.Duration) (string, error) {
	claims := tokenClaims{
		OrgID: org, Subject: subject, IssuedAt: float64(now.Unix()), ExpiresAt: float64(now.Add(ttl).Unix()),
	}
	switch err := cmp.Or(claims.check(now), checkSecret(secret)); {
	case err != nil:
		return "", fmt.Errorf("signing an operator token: %w", err)
	case ttl <= 0:
		return "", fmt.Errorf("signing an operator token: lifetime %v is not positive", ttl)
	}
	payload, err := json.Marshal(claims)
	header := jws.NewHeaders()
	if err = errors.Join(err, header.Set(jws.TypeKey, "JWT")); err != nil {
		return "", fmt.Errorf("signing an operator token: %w", err)
	}
	token, err := jws.Sign(payload, jws.WithKey(jwa.HS256(), secret, jws.WithProtectedHeaders(header)))
	if err != nil {
		return "", fmt.Errorf("signing an operator token: %w", err)
	}
	return string(token), nil
}
