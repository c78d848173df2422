package receipt

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"
)

// opensslKey is the key of RFC 8410, in the form that "openssl genpkey -algorithm
// ed25519" writes.
const opensslKey = `-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC
-----END PRIVATE KEY-----
`

func TestPrivateKeyFile(t *testing.T) {
	priv, err := ParsePrivateKey([]byte("\n" + opensslKey + "\n\n"))
	must(t, err)
	data, err := MarshalPrivateKey(priv)
	if err != nil || string(data) != opensslKey {
		t.Errorf("MarshalPrivateKey = %s, %v, want %s", data, err, opensslKey)
	}
	if _, err := MarshalPrivateKey(priv[:32]); err == nil {
		t.Error("MarshalPrivateKey(seed) = nil error")
	}
}

func TestPrivateKeyFileRefuses(t *testing.T) {
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(ec)
	must(t, err)
	other := string(pem.EncodeToMemory(&pem.Block{Type: pemType, Bytes: der}))
	for _, tc := range []struct{ name, in, because string }{
		{"empty", "", "not a PEM file"},
		{"text before", "key:\n" + opensslKey, "not a PEM file"},
		{"two keys", opensslKey + opensslKey, "data after"},
		{"text after", opensslKey + "x", "data after"},
		{"cut", opensslKey[:80], "not a PEM file"},
		{"public", strings.ReplaceAll(opensslKey, "PRIVATE", "PUBLIC"), `"PUBLIC KEY"`},
		{"encrypted", strings.ReplaceAll(opensslKey, "PRIVATE", "ENCRYPTED PRIVATE"), `"ENCRYPTED PRIVATE KEY"`},
		{"headers", strings.Replace(opensslKey, "-\n", "-\nProc-Type: 4,ENCRYPTED\n\n", 1), "unencrypted"},
		{"another algorithm", other, "not Ed25519"},
		{"not PKCS#8", strings.Replace(opensslKey, "MC4C", "MC4D", 1), "not PKCS#8"},
	} {
		priv, err := ParsePrivateKey([]byte(tc.in))
		if err == nil || !strings.Contains(err.Error(), tc.because) || priv != nil {
			t.Errorf("%s: ParsePrivateKey = %v, want an error with %q", tc.name, err, tc.because)
		}
		if err != nil && strings.Contains(err.Error(), "1O5y") {
			t.Errorf("%s: the error quotes the key: %v", tc.name, err)
		}
	}
}
