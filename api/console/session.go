package console

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"
)

const (
	cookieName = "writ-console"
	cookiePath = "/console"
	// maxSession is how long one stays signed in.
	maxSession = 12 * time.Hour
	// maxCookie is the size of a cookie that every browser keeps (RFC 6265, section 6.1), less its
	// attributes.
	maxCookie = 3900
)

// session is what the cookie holds: who is signed in.
type session struct {
	Credential   string    `json:"c"`
	Organization string    `json:"o"`
	Kind         string    `json:"k"` // operator or api_key
	ID           string    `json:"i"`
	Expires      time.Time `json:"e"`
	Ending       bool      `json:"x"` // whether the credential itself expires then
}

var (
	errNoSession = errors.New("nobody is signed in")
	errExpired   = errors.New("the credential has expired")
	errTimedOut  = errors.New("the session has ended")
	errTooLong   = errors.New("the credential is too long for a cookie")
)

// seal encrypts and authenticates cookies with AES-256-GCM.
type seal struct{ aead cipher.AEAD }

// newSeal derives the key of cookies from secret, which all replicas share.
func newSeal(secret []byte) (seal, error) {
	key, err := hkdf.Key(sha256.New, secret, nil, "writ console cookie v1", 32)
	if err != nil {
		return seal{}, fmt.Errorf("deriving the key of cookies: %w", err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return seal{}, fmt.Errorf("deriving the key of cookies: %w", err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return seal{}, fmt.Errorf("deriving the key of cookies: %w", err)
	}
	return seal{aead}, nil
}

func (s seal) close(in session) (string, error) {
	text, err := json.Marshal(in)
	if err != nil {
		return "", fmt.Errorf("encoding a session: %w", err)
	}
	sealed := base64.RawURLEncoding.EncodeToString(s.aead.Seal(nil, nil, text, []byte(cookieName)))
	if len(sealed) > maxCookie {
		return "", errTooLong
	}
	return sealed, nil
}

// open returns the session of a request, or the reason why it has no session.
func (s seal) open(r *http.Request, now time.Time) (in session, err error) {
	cookie, err := r.Cookie(cookieName)
	if err != nil {
		return session{}, errNoSession
	}
	return s.unseal(cookie.Value, now)
}

func (s seal) unseal(value string, now time.Time) (in session, err error) {
	sealed, err := base64.RawURLEncoding.DecodeString(value)
	if err != nil {
		return session{}, errNoSession
	}
	text, err := s.aead.Open(nil, nil, sealed, []byte(cookieName))
	if err != nil || json.Unmarshal(text, &in) != nil {
		return session{}, errNoSession
	}
	switch {
	case now.Before(in.Expires):
		return in, nil
	case in.Ending:
		return session{}, errExpired
	}
	return session{}, errTimedOut
}

// cookie returns the cookie with value until expires. An empty value removes it.
func (c *Console) cookie(value string, expires time.Time) *http.Cookie {
	k := &http.Cookie{
		Name: cookieName, Value: value, Path: cookiePath, Expires: expires, HttpOnly: true, Secure: c.https(),
		SameSite: http.SameSiteLaxMode,
	}
	if value == "" {
		k.MaxAge = -1
	}
	return k
}
