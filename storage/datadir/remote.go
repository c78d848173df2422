package datadir

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"writ.example/writ/storage/receipt"
)

// signerTimeout bounds each request to a signer.
const signerTimeout = 2 * time.Second

// IsSigner reports whether a signing key is named by the URL of a signer that holds it, not by a file. Such a URL
// begins with https: or unix:.
func IsSigner(name string) bool {
	return strings.HasPrefix(name, "https:") || strings.HasPrefix(name, "unix:")
}

// remoteKeys is what a signer answers to GET: the public key that signs, and the one that signs from a time on.
// A public key is 32 bytes, in base64 as encoding/json writes bytes.
type remoteKeys struct {
	Public []byte     `json:"public_key"`
	Next   []byte     `json:"next_public_key"`
	From   *time.Time `json:"next_from"`
}

// signRequest asks a signer with POST for the Ed25519 signature of a message by the key with a public half.
type signRequest struct {
	Public  []byte `json:"public_key"`
	Message []byte `json:"message"`
}

type signAnswer struct {
	Signature []byte `json:"signature"`
}

// remoteSigner is a signer at a URL.
type remoteSigner struct {
	client *http.Client
	url    string
}

// newRemoteSigner returns the signer at https://HOST/PATH, or at unix:FILE, a socket.
func newRemoteSigner(at string) (*remoteSigner, error) {
	u, err := url.Parse(at)
	transport := &http.Transport{MaxIdleConnsPerHost: 2, IdleConnTimeout: 90 * time.Second}
	switch {
	case err != nil:
		return nil, errors.New("the URL of the signer: want https://HOST/PATH or unix:FILE")
	case u.Scheme == "unix" && u.Opaque+u.Path != "":
		socket := u.Opaque + u.Path
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", socket)
		}
		at = "http://signer/"
	case u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("the URL of the signer: want https://HOST/PATH without credentials and query, " +
			"or unix:FILE")
	}
	return &remoteSigner{&http.Client{
		Transport: transport, Timeout: signerTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, at}, nil
}

// signing asks for the keys of the signer.
func (r *remoteSigner) signing() (s Signing, err error) {
	var keys remoteKeys
	if err := r.do(http.MethodGet, nil, &keys); err != nil {
		return Signing{}, err
	}
	if s.Key, err = r.signer(keys.Public); err != nil {
		return Signing{}, fmt.Errorf("public_key: %w", err)
	}
	if keys.Next == nil && keys.From == nil {
		return s, nil
	}
	if keys.From == nil {
		return Signing{}, errors.New("next_from: want a time such as 2026-11-28T09:00:00Z beside next_public_key")
	}
	if s.Next, err = r.signer(keys.Next); err != nil {
		return Signing{}, fmt.Errorf("next_public_key: %w", err)
	}
	s.From = *keys.From
	return s, nil
}

func (r *remoteSigner) signer(public ed25519.PublicKey) (*receipt.Signer, error) {
	return receipt.NewRemoteSigner(public, func(message []byte) ([]byte, error) {
		body, err := json.Marshal(signRequest{Public: public, Message: message})
		if err != nil {
			return nil, err
		}
		var answer signAnswer
		err = r.do(http.MethodPost, body, &answer)
		return answer.Signature, err
	})
}

// do sends a request and reads its answer.
func (r *remoteSigner) do(method string, body []byte, answer any) error {
	req, err := http.NewRequest(method, r.url, bytes.NewReader(body)) //nolint:noctx // the client has a timeout
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := r.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 4096))
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the signer answers %s: %.200q", resp.Status, text)
	}
	if err := json.Unmarshal(text, answer); err != nil {
		return fmt.Errorf("the signer's answer: %w", err)
	}
	return nil
}
