package tlsfiles

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
)

// Untrusted reports whether err is of an HTTP client that does not trust the authority of a server's certificate. Other
// mistakes of a certificate, such as its name or its end, are not mended by trusting another authority.
func Untrusted(err error) bool {
	var asked *url.Error
	var refused *tls.CertificateVerificationError
	if !errors.As(err, &asked) || !errors.As(err, &refused) {
		return false
	}
	// The verifiers of some systems return errors without a type for an authority that they do not know.
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	return !errors.As(err, &name) && !errors.As(err, &invalid)
}

// Advise adds to an error that is [Untrusted] which flag names the authority. It returns other errors as they are.
func Advise(err error) error {
	if !Untrusted(err) {
		return err
	}
	return fmt.Errorf("%w: name a file of its certificates by --ca or WRIT_CA", err)
}
