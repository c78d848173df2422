package receipt

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
)

const pemType = "PRIVATE KEY"

// MarshalPrivateKey returns priv as PKCS#8 in PEM, like "openssl genpkey -algorithm ed25519". A
// reader of the file can sign, so store the file with mode 0600.
func MarshalPrivateKey(priv ed25519.PrivateKey) ([]byte, error) {
	if len(priv) != ed25519.PrivateKeySize {
		return nil, fmt.Errorf("encoding private key: %d bytes, not %d", len(priv), ed25519.PrivateKeySize)
	}
	der, err := x509.MarshalPKCS8PrivateKey(priv)
	if err != nil {
		return nil, fmt.Errorf("encoding private key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: pemType, Bytes: der}), nil
}

// ParsePrivateKey reads exactly one unencrypted PKCS#8 Ed25519 key in PEM. Only white space may
// stand around the key. The errors never quote the key.
func ParsePrivateKey(data []byte) (ed25519.PrivateKey, error) {
	block, rest := pem.Decode(data)
	if block == nil || !bytes.HasPrefix(bytes.TrimSpace(data), []byte("-----BEGIN ")) {
		return nil, errors.New("parsing private key: not a PEM file")
	}
	if block.Type != pemType || len(block.Headers) > 0 {
		return nil, fmt.Errorf("parsing private key: PEM block %.32q, not an unencrypted %q", block.Type, pemType)
	}
	if len(bytes.TrimSpace(rest)) > 0 {
		return nil, errors.New("parsing private key: data after the PEM block")
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, errors.New("parsing private key: not PKCS#8")
	}
	priv, ok := key.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("parsing private key: %T, not Ed25519", key)
	}
	return priv, nil
}
