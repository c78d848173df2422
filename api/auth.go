package api

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"writ.example/writ/api/operator"
	"writ.example/writ/decision"
	"writ.example/writ/engine"
	"writ.example/writ/internal/apikey"
	"writ.example/writ/storage"
	"writ.example/writ/storage/ledger"
	"writ.example/writ/storage/registry"
)

// auth authenticates requests and caches accepted credentials. A key is cached by its id until the
// store reports a change of the key. A verified operator token is cached by its hash until the
// token expires.
type auth struct {
	keys      *decision.Cache[apikey.ID, apiKey]
	jwts      *decision.Cache[jwtKey, principal]
	operators *operator.Verifier // nil if no operator tokens are accepted
	service   *[sha256.Size]byte // the hash of the service bearer; nil if there is no service bearer
	failures  failures
}

// apiKey is the part of a storage.Token that authentication needs.
type apiKey struct {
	hash    [sha256.Size]byte
	revoked bool
	who     principal
}

// jwtKey is the cache key of a verified operator token. gen is the generation of the signing keys.
// A change of these keys changes gen, so cached tokens are verified again.
type jwtKey struct {
	hash [sha256.Size]byte
	gen  uint64
}

const (
	keyCacheBytes = 16 << 20
	jwtCacheBytes = 4 << 20
	// credentialBytes is the approximate size in bytes of a cache entry without its strings.
	credentialBytes = 320
)

// failures counts refused credentials by reason. The reasons are labels of a metric.
type failures struct{ byReason *prometheus.CounterVec }

const (
	failedMissing   = "missing"
	failedMalformed = "malformed"
	failedUnknown   = "unknown_key"
	failedMismatch  = "wrong_secret"
	failedRevoked   = "revoked"
	failedExpired   = "expired"
	failedOperator  = "invalid_operator_token"
	failedScope     = "insufficient_scope"
	failedAgent     = "agent_not_bound"
	failedService   = "invalid_service_token"
	failedURL       = "credential_in_url"
)

// newFailures starts a counter at 0 for each reason. An alert on a rate would miss the first
// failure of a counter that starts at 1.
func newFailures(byReason *prometheus.CounterVec) failures {
	f := failures{byReason}
	for _, reason := range []string{failedMissing, failedMalformed, failedUnknown, failedMismatch, failedRevoked,
		failedExpired, failedOperator, failedScope, failedAgent, failedService, failedURL} {
		byReason.WithLabelValues(reason)
	}
	return f
}

func (f failures) count(reason string) { f.byReason.WithLabelValues(reason).Inc() }

func newAuth(tokens *registry.Registry, operators *operator.Verifier, serviceToken string, f failures) *auth {
	a := &auth{operators: operators, failures: f}
	if serviceToken != "" {
		hash := sha256.Sum256([]byte(serviceToken))
		a.service = &hash
	}
	a.keys = decision.NewCache(keyCacheBytes, func(k apiKey) int64 {
		return k.who.bytes()
	}, func(ctx context.Context, id apikey.ID) (apiKey, error) {
		t, err := tokens.Token(ctx, string(id[:]))
		if err != nil {
			return apiKey{}, err
		}
		scopes, _, err := parseScopes(t.Scopes)
		if err != nil {
			return apiKey{}, fmt.Errorf("scopes of token %s: %w", t.ID, err)
		}
		who := principal{
			org: t.OrganizationID, subject: t.ID, scopes: scopes, expires: t.ExpiresAt, isKey: true, policy: t.PolicyID,
		}
		if t.AgentID != "" {
			if who.agents, err = engine.CompileAgentPattern("agent_id", t.AgentID); err != nil {
				// the caller did not write this document, so the error must not become a 400
				return apiKey{}, fmt.Errorf("the agents of token %s: %s", t.ID, err.Error())
			}
		}
		return apiKey{hash: t.Hash, revoked: !t.RevokedAt.IsZero(), who: who}, nil
	})
	a.jwts = decision.NewCache(jwtCacheBytes, func(p principal) int64 {
		return p.bytes()
	}, func(ctx context.Context, _ jwtKey) (principal, error) {
		token, _ := ctx.Value(jwtText{}).(string)
		who, err := a.operators.Verify(ctx, token)
		return principal{
			org: who.Organization, subject: who.Subject, scopes: scopeAll | operatorOnly, expires: who.Expires,
		}, err
	})
	return a
}

// errUnauthorized is the error for every refused credential. A caller must not learn the reason of
// the refusal.
var errUnauthorized = refuse(codeUnauthorized, "Send Authorization: Bearer with a valid API key or operator token.")

// errNoService takes the place of errUnauthorized on routes that demand the service bearer.
var errNoService = refuse(codeUnauthorized,
	"Send Authorization: Bearer with the deployment's service token. API keys and operator tokens are not "+
		"accepted here.")

// recognize returns the principal of a request whose credential is cached and still valid. It does
// not read the store, verify a signature or count a failure.
func (a *auth) recognize(h *fasthttp.RequestHeader, want scopeSet, now time.Time) (who principal, ok bool) {
	token := bearer(h)
	switch {
	case len(token) == 0:
		return principal{}, false
	case want == service:
		return principal{}, a.isService(token)
	case bytes.HasPrefix(token, []byte(apikey.Prefix)):
		id, err := apikey.Parse(token)
		if err != nil {
			return principal{}, false
		}
		key, kept := a.keys.Kept(id)
		hash := apikey.Hash(token)
		if !kept || subtle.ConstantTimeCompare(hash[:], key.hash[:]) != 1 || key.revoked {
			return principal{}, false
		}
		who = key.who
	case a.operators != nil:
		if who, ok = a.jwts.Kept(jwtKey{sha256.Sum256(token), a.operators.Generation()}); !ok {
			return principal{}, false
		}
	default:
		return principal{}, false
	}
	return who, !who.expired(now)
}

func (a *auth) permit(who *principal, want scopeSet) error {
	switch {
	case want == service, want == anyCredential:
	case !who.scopes.has(want):
		a.failures.count(failedScope)
		return insufficientScope(want)
	case who.agents != nil && want&^boundScopes != 0:
		return a.tooWide(who)
	}
	return nil
}

// isService reports whether token is the service bearer. It compares hashes, so its running time
// reveals nothing about the bearer's text or length.
func (a *auth) isService(token []byte) bool {
	sent := sha256.Sum256(token)
	return a.service != nil && subtle.ConstantTimeCompare(sent[:], a.service[:]) == 1
}

func insufficientScope(want scopeSet) error {
	return refuse(codeInsufficientScope, "The credential lacks the scope "+want.String()+".")
}

// authenticate returns the principal of a request. Unlike [auth.recognize] it looks up keys in the store and verifies
// operator tokens.
func (a *auth) authenticate(
	ctx context.Context, h *fasthttp.RequestHeader, want scopeSet, now time.Time,
) (principal, error) {
	token := bearer(h)
	refusal := errUnauthorized
	if want == service {
		refusal = errNoService
	}
	var (
		who    principal
		reason string
		err    error
	)
	switch {
	case len(token) == 0:
		reason = failedMissing
	case want == service:
		if !a.isService(token) {
			reason = failedService
		}
	case bytes.HasPrefix(token, []byte(apikey.Prefix)):
		who, reason, err = a.byKey(ctx, token)
	case a.operators != nil:
		who, reason = a.byJWT(ctx, token)
	default:
		reason = failedMalformed
	}
	if reason == "" && who.expired(now) {
		reason = failedExpired
	}
	switch {
	case err != nil:
		return principal{}, err
	case reason != "":
		a.failures.count(reason)
		return principal{}, refusal
	}
	return who, nil
}

// bearer returns the token of the Authorization header. It returns nil if the header is missing,
// repeated or not a bearer token.
func bearer(h *fasthttp.RequestHeader) []byte {
	const scheme = "bearer "
	all := h.PeekAll("Authorization")
	if len(all) != 1 || len(all[0]) <= len(scheme) || !bytes.EqualFold(all[0][:len(scheme)], []byte(scheme)) {
		return nil
	}
	return bytes.Trim(all[0][len(scheme):], " ")
}

// byKey returns the principal of an API key. A non-empty reason says why the key is refused.
func (a *auth) byKey(ctx context.Context, token []byte) (who principal, reason string, err error) {
	id, err := apikey.Parse(token)
	if err != nil {
		return who, failedMalformed, nil //nolint:nilerr // reason replaces the error
	}
	key, err := a.keys.Get(ctx, id)
	hash := apikey.Hash(token)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return who, failedUnknown, nil
	case err != nil:
		return who, "", fmt.Errorf("looking up an API key: %w", err)
	case subtle.ConstantTimeCompare(hash[:], key.hash[:]) != 1:
		return who, failedMismatch, nil
	case key.revoked:
		return who, failedRevoked, nil
	}
	return key.who, "", nil
}

// byJWT returns the principal of an operator token. A non-empty reason says why the token is
// refused.
func (a *auth) byJWT(ctx context.Context, token []byte) (who principal, reason string) {
	key := jwtKey{sha256.Sum256(token), a.operators.Generation()}
	who, err := a.jwts.Get(context.WithValue(ctx, jwtText{}, string(token)), key)
	if err != nil {
		return who, failedOperator
	}
	return who, ""
}

// jwtText is the context key for the text of the token to verify. The cache key has only a hash of
// the text.
type jwtText struct{}

// forget drops the API key with this id from the cache.
func (a *auth) forget(tokenID string) {
	if len(tokenID) == apikey.IDLen {
		a.keys.Invalidate(apikey.ID([]byte(tokenID)))
	}
}

// principal is the operator or key that a request acts for.
type principal struct {
	org     string
	subject string // the operator's sub or the API key's id
	scopes  scopeSet
	expires time.Time // zero if the credential never expires
	isKey   bool      // true for an API key, false for an operator
	// agents is the binding of a key; nil means that the key is not bound. policy is the id of the
	// key's policy, or empty. It applies to requests that name no policy.
	agents *engine.AgentPattern
	policy string
}

// bytes is the approximate size of p in a cache.
func (p *principal) bytes() int64 {
	n := credentialBytes + len(p.org) + len(p.subject) + len(p.policy)
	if p.agents != nil {
		n += p.agents.Size()
	}
	return int64(n)
}

// credential returns the text that identifies p in rows of the history.
func (p *principal) credential() string {
	if p.isKey {
		return p.subject
	}
	return ledger.OperatorPrefix + p.subject
}

// settler returns p as the one who records a settlement. An operator has every scope, so the scope
// budgets:release says nothing of operators: an operator releases only what somebody else decided.
func (p *principal) settler() decision.Settler {
	may := p.isKey && p.agents == nil && p.scopes.has(scopeBudgetsRelease)
	return decision.Settler{Credential: p.credential(), Releases: may}
}

func (p *principal) expired(now time.Time) bool {
	return !p.expires.IsZero() && !now.Before(p.expires)
}
