package api

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"writ/engine/resource"

	"github.com/go-json-experiment/json"
	"github.com/golang-jwt/jwt/v5"
)

// The algorithms of operator tokens. A deployment pins one; what a token's
// header says is only ever compared with it.
const (
	algHS256 = "HS256"
	algRS256 = "RS256"
	algES256 = "ES256"
	algEdDSA = "EdDSA"
)

const (
	// jwtLeeway forgives clocks that differ.
	jwtLeeway = 30 * time.Second
	// minSecret is RFC 7518's least length of an HS256 key, in bytes.
	minSecret  = 32
	maxOrg     = 128
	maxSubject = 256
)

// operatorClaims are what an operator token must claim, besides its times.
type operatorClaims struct {
	OrgID string `json:"org_id"`
	jwt.RegisteredClaims
}

// operators verifies operator tokens: JWTs of one pinned algorithm.
type operators struct {
	parser *jwt.Parser
	secret []byte // of HS256
	keys   *jwks  // of the others
}

func newOperators(alg string, secret []byte, keys *jwks, now func() time.Time) *operators {
	return &operators{
		parser: jwt.NewParser(
			jwt.WithValidMethods([]string{alg}),
			jwt.WithExpirationRequired(),
			jwt.WithIssuedAt(),
			jwt.WithLeeway(jwtLeeway),
			jwt.WithTimeFunc(now),
			jwt.WithStrictDecoding(),
		),
		secret: secret,
		keys:   keys,
	}
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
	var claims operatorClaims
	_, err := o.parser.ParseWithClaims(token, &claims, func(t *jwt.Token) (any, error) {
		if _, ok := t.Header["crit"]; ok {
			return nil, errors.New("critical header parameters are not understood")
		}
		if o.keys == nil {
			return o.secret, nil
		}
		kid, _ := t.Header["kid"].(string)
		return o.keys.key(ctx, kid)
	})
	if err != nil {
		return principal{}, fmt.Errorf("verifying an operator token: %w", err)
	}
	if err := claims.check(); err != nil {
		return principal{}, fmt.Errorf("verifying an operator token: %w", err)
	}
	return principal{
		org:     claims.OrgID,
		subject: claims.Subject,
		scopes:  scopeAll,
		expires: claims.ExpiresAt.Add(jwtLeeway),
	}, nil
}

// UnmarshalJSON refuses a claim that is given twice and reads claims by their
// exact names alone. The parser's own decoder would take Org_Id for org_id: an
// issuer that lets its users choose further claims would let them choose their
// organization.
func (c *operatorClaims) UnmarshalJSON(data []byte) error {
	type plain operatorClaims
	return json.Unmarshal(data, (*plain)(c))
}

func (c *operatorClaims) check() error {
	if err := checkName(c.OrgID, maxOrg); err != nil {
		return fmt.Errorf("org_id %w", err)
	}
	if strings.TrimSpace(c.OrgID) != c.OrgID {
		return errors.New("org_id must not start or end with white space")
	}
	if err := checkName(c.Subject, maxSubject); err != nil {
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
	claims := operatorClaims{OrgID: org, RegisteredClaims: jwt.RegisteredClaims{
		Subject:   subject,
		IssuedAt:  jwt.NewNumericDate(now),
		ExpiresAt: jwt.NewNumericDate(now.Add(ttl)),
	}}
	switch err := claims.check(); {
	case err != nil:
		return "", fmt.Errorf("signing an operator token: %w", err)
	case len(secret) < minSecret:
		return "", fmt.Errorf("signing an operator token: the secret has %d bytes, want at least %d", len(secret), minSecret)
	case ttl <= 0:
		return "", fmt.Errorf("signing an operator token: lifetime %v is not positive", ttl)
	}
	token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString(secret)
	if err != nil {
		return "", fmt.Errorf("signing an operator token: %w", err)
	}
	return token, nil
}
