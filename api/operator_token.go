package api

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jws"

	"writ/engine/condition"
	"writ/engine/resource"
)

// The algorithms of operator tokens. A deployment pins one; what a token's
// header says is only ever compared with it.
const (
	algHS256 = "HS256"
	algRS256 = "RS256"
	algES256 = "ES256"
	algEdDSA = "EdDSA"
)

// keyBits are how many bits a key has at least, where its algorithm leaves that open
// (RFC 7518 §3.2 and §3.3).
var keyBits = map[string]int{algHS256: 256, algRS256: 2048}

func checkSecret(secret []byte) error {
	if least := keyBits[algHS256] / 8; len(secret) < least {
		return fmt.Errorf("the HS256 secret has %d bytes, want at least %d", len(secret), least)
	}
	return nil
}

const (
	// jwtLeeway forgives clocks that differ.
	jwtLeeway = 30 * time.Second
	// latestExpiry is in the year 10680: beyond it seconds overflow a time.
	latestExpiry = 1 << 38
)

// operatorClaims are what an operator token may claim that counts here. The times
// are in seconds since 1970.
type operatorClaims struct {
	OrgID     string  `json:"org_id"`
	Subject   string  `json:"sub"`
	ExpiresAt float64 `json:"exp"`
	IssuedAt  float64 `json:"iat,omitzero"`
	NotBefore float64 `json:"nbf,omitzero"`
}

// operators verifies operator tokens: JWTs of one pinned algorithm.
type operators struct {
	alg    jwa.SignatureAlgorithm
	secret []byte        // of HS256
	keys   *operatorKeys // of the others
	now    func() time.Time
}

func newOperators(alg string, secret []byte, keys *operatorKeys, now func() time.Time) *operators {
	pinned, _ := jwa.LookupSignatureAlgorithm(alg) // one that is not known verifies nothing
	return &operators{alg: pinned, secret: secret, keys: keys, now: now}
}

// generation changes when a verified token must be verified again.
func (o *operators) generation() uint64 {
	if o.keys == nil {
		return 0
	}
	return o.keys.generation()
}

// verify returns whom a token speaks for.
func (o *operators) verify(ctx context.Context, token string) (principal, error) {
	claims, err := o.claims(ctx, token)
	if err == nil {
		err = claims.check(o.now())
	}
	if err != nil {
		return principal{}, fmt.Errorf("verifying an operator token: %w", err)
	}
	return principal{
		org:     claims.OrgID,
		subject: claims.Subject,
		scopes:  scopeAll | operatorOnly,
		expires: time.Unix(int64(claims.ExpiresAt), 0).Add(jwtLeeway),
	}, nil
}

// claims returns what a token claims, if its signature is good. A name that is
// given twice is an error, and names are compared exactly: an issuer that lets its
// users choose further claims must not let them choose org_id or exp.
func (o *operators) claims(ctx context.Context, token string) (claims operatorClaims, err error) {
	var header []byte
	// the library also takes padding and the other alphabet
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
	var key any = o.secret
	if o.keys != nil {
		if key, err = o.keys.key(ctx, named.KeyID); err != nil {
			return claims, err
		}
	}
	payload, err := jws.VerifyCompactFast(key, []byte(token), o.alg) // refuses "crit" and any other algorithm
	if err != nil {
		return claims, err
	}
	return claims, json.Unmarshal(payload, &claims)
}

func (c *operatorClaims) check(now time.Time) error {
	at, leeway := float64(now.UnixNano())/1e9, jwtLeeway.Seconds()
	switch {
	case c.ExpiresAt <= 0 || c.ExpiresAt > latestExpiry:
		return errors.New("exp is required, in seconds since 1970")
	case at >= math.Trunc(c.ExpiresAt)+leeway:
		return errors.New("it has expired")
	case at < max(math.Trunc(c.NotBefore), math.Trunc(c.IssuedAt))-leeway:
		return errors.New("it is not valid yet")
	}
	if err := checkName(c.OrgID, condition.MaxName); err != nil {
		return fmt.Errorf("org_id %w", err)
	}
	if strings.TrimSpace(c.OrgID) != c.OrgID {
		return errors.New("org_id must not start or end with white space")
	}
	if err := checkName(c.Subject, condition.MaxLabel); err != nil {
		return fmt.Errorf("sub %w", err)
	}
	return nil
}

// checkName refuses what cannot name an organization, a subject or an agent.
func checkName(s string, maxLen int) error {
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

// SignOperatorToken returns an HS256 operator token for subject with full
// access to org, valid from now for ttl. The secret must be the one the server
// is configured with.
func SignOperatorToken(secret []byte, org, subject string, now time.Time, ttl time.Duration) (string, error) {
	claims := operatorClaims{
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
