// Command signer signs writ's receipts with Ed25519 keys that a PKCS#11 token holds and never gives away. It
// speaks the protocol of docs/signing-url.md. It uses cgo, so it is a module of its own beside writ.
//
//	PKCS11_PIN=… signer -module /usr/lib/softhsm/libsofthsm2.so -token writ -key k1 -listen /run/writ/signer.sock
//
// Every program that can connect can have it sign. The socket is for the user of the program alone: run writ as
// that user.
package main

import (
	"context"
	"crypto/ed25519"
	"encoding/asn1"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/miekg/pkcs11"
)

// PKCS#11 3.0 names these. The library is of an older version.
const (
	keyTypeEdwards  = 0x40
	generateEdwards = 0x1055
	signEdDSA       = 0x1057
)

// curve is the object identifier of Ed25519 in DER.
var curve = []byte{0x06, 0x03, 0x2b, 0x65, 0x70}

func main() {
	module := flag.String("module", "/usr/lib/softhsm/libsofthsm2.so", "PKCS#11 module")
	label := flag.String("token", "writ", "label of the token")
	key := flag.String("key", "", "label of the key that signs")
	next := flag.String("next", "", "label of the key that signs from -next-from on")
	from := flag.String("next-from", "", "when -next begins to sign, such as 2026-11-28T09:00:00Z")
	generate := flag.Bool("generate", false, "make the key -key and end")
	listen := flag.String("listen", "", "path of the Unix socket")
	flag.Parse()
	if err := run(*module, *label, *key, *next, *from, *generate, *listen); err != nil {
		log.Fatal("signer: ", err)
	}
}

func run(module, label, key, next, from string, generate bool, listen string) error {
	t, err := open(module, label, os.Getenv("PKCS11_PIN"))
	if err != nil {
		return err
	}
	defer t.close()
	if generate {
		return t.generate(key)
	}
	k := keys{}
	if k.Public, err = t.find(key); err != nil {
		return err
	}
	if next != "" {
		at, err := time.Parse(time.RFC3339, from)
		if err != nil {
			return fmt.Errorf("-next-from: %w", err)
		}
		if k.Next, err = t.find(next); err != nil {
			return err
		}
		k.From = &at
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	old := syscall.Umask(0o177)
	socket, err := net.Listen("unix", listen)
	syscall.Umask(old)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: handler(t, k), ReadTimeout: 5 * time.Second}
	go func() {
		<-ctx.Done()
		server.Close()
	}()
	log.Printf("signer: signs at unix:%s", listen)
	if err := server.Serve(socket); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// keys is the answer to GET.
type keys struct {
	Public []byte     `json:"public_key"`
	Next   []byte     `json:"next_public_key,omitempty"`
	From   *time.Time `json:"next_from,omitempty"`
}

func handler(t *token, k keys) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /", func(w http.ResponseWriter, _ *http.Request) { answer(w, k) })
	mux.HandleFunc("POST /", func(w http.ResponseWriter, r *http.Request) {
		var ask struct {
			Public  []byte `json:"public_key"`
			Message []byte `json:"message"`
		}
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 4096)).Decode(&ask); err != nil || len(ask.Message) == 0 {
			http.Error(w, "want public_key and message in base64", http.StatusBadRequest)
			return
		}
		sig, err := t.sign(ask.Public, ask.Message)
		switch {
		case errors.Is(err, errNoKey):
			http.Error(w, err.Error(), http.StatusNotFound)
		case err != nil:
			log.Print("signer: ", err)
			http.Error(w, "the token does not sign", http.StatusServiceUnavailable)
		default:
			answer(w, map[string][]byte{"signature": sig})
		}
	})
	return mux
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // whoever asked is gone
}

var errNoKey = errors.New("no such key")

// token is a session with a PKCS#11 token. A session does one thing at a time.
type token struct {
	p11     *pkcs11.Ctx
	session pkcs11.SessionHandle

	mu      sync.Mutex
	private map[string]pkcs11.ObjectHandle // by public key
}

func open(module, label, pin string) (*token, error) {
	p := pkcs11.New(module)
	if p == nil {
		return nil, fmt.Errorf("-module %s: cannot be loaded", module)
	}
	if err := p.Initialize(); err != nil {
		return nil, err
	}
	slots, err := p.GetSlotList(true)
	if err != nil {
		return nil, err
	}
	for _, slot := range slots {
		info, err := p.GetTokenInfo(slot)
		if err != nil || info.Label != label {
			continue
		}
		session, err := p.OpenSession(slot, pkcs11.CKF_SERIAL_SESSION|pkcs11.CKF_RW_SESSION)
		if err != nil {
			return nil, err
		}
		if err := p.Login(session, pkcs11.CKU_USER, pin); err != nil {
			return nil, fmt.Errorf("PKCS11_PIN: %w", err)
		}
		return &token{p11: p, session: session, private: make(map[string]pkcs11.ObjectHandle)}, nil
	}
	return nil, fmt.Errorf("-token %s: no token has this label", label)
}

func (t *token) close() {
	_ = t.p11.Logout(t.session) // it ends with the process
	_ = t.p11.Finalize()
	t.p11.Destroy()
}

// generate makes a key that cannot leave the token.
func (t *token) generate(label string) error {
	public := []*pkcs11.Attribute{
		pkcs11.NewAttribute(pkcs11.CKA_LABEL, label), pkcs11.NewAttribute(pkcs11.CKA_TOKEN, true),
		pkcs11.NewAttribute(pkcs11.CKA_VERIFY, true), pkcs11.NewAttribute(pkcs11.CKA_EC_PARAMS, curve),
	}
	private := []*pkcs11.Attribute{
		pkcs11.NewAttribute(pkcs11.CKA_LABEL, label), pkcs11.NewAttribute(pkcs11.CKA_TOKEN, true),
		pkcs11.NewAttribute(pkcs11.CKA_SIGN, true), pkcs11.NewAttribute(pkcs11.CKA_SENSITIVE, true),
		pkcs11.NewAttribute(pkcs11.CKA_EXTRACTABLE, false),
	}
	_, _, err := t.p11.GenerateKeyPair(t.session, []*pkcs11.Mechanism{pkcs11.NewMechanism(generateEdwards, nil)}, public, private)
	return err
}

// find returns the public half of a key and remembers the private one.
func (t *token) find(label string) (ed25519.PublicKey, error) {
	public, err := t.object(pkcs11.CKO_PUBLIC_KEY, label)
	if err != nil {
		return nil, err
	}
	private, err := t.object(pkcs11.CKO_PRIVATE_KEY, label)
	if err != nil {
		return nil, err
	}
	got, err := t.p11.GetAttributeValue(t.session, public, []*pkcs11.Attribute{pkcs11.NewAttribute(pkcs11.CKA_EC_POINT, nil)})
	if err != nil {
		return nil, err
	}
	var point []byte
	if _, err := asn1.Unmarshal(got[0].Value, &point); err != nil || len(point) != ed25519.PublicKeySize {
		return nil, fmt.Errorf("the key %s is not of Ed25519", label)
	}
	t.private[string(point)] = private
	return point, nil
}

func (t *token) object(class uint, label string) (pkcs11.ObjectHandle, error) {
	if err := t.p11.FindObjectsInit(t.session, []*pkcs11.Attribute{
		pkcs11.NewAttribute(pkcs11.CKA_CLASS, class), pkcs11.NewAttribute(pkcs11.CKA_LABEL, label),
		pkcs11.NewAttribute(pkcs11.CKA_KEY_TYPE, keyTypeEdwards),
	}); err != nil {
		return 0, err
	}
	found, _, err := t.p11.FindObjects(t.session, 2)
	if err := errors.Join(err, t.p11.FindObjectsFinal(t.session)); err != nil {
		return 0, err
	}
	if len(found) != 1 {
		return 0, fmt.Errorf("the token has %d Ed25519 keys with the label %q, want one: signer -generate makes one", len(found), label)
	}
	return found[0], nil
}

func (t *token) sign(public, message []byte) ([]byte, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	private, ok := t.private[string(public)]
	if !ok {
		return nil, errNoKey
	}
	if err := t.p11.SignInit(t.session, []*pkcs11.Mechanism{pkcs11.NewMechanism(signEdDSA, nil)}, private); err != nil {
		return nil, err
	}
	return t.p11.Sign(t.session, message)
}
