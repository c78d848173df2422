package system

import (
	"crypto/ed25519"
	"crypto/tls"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"writ.example/writ/internal/tlsfiles/tlstest"
	"writ.example/writ/storage/receipt"
)

// signerFault is how a signer answers to POST.
type signerFault int32

const (
	signs signerFault = iota
	refuses
	hangs
	wrong
	closes
)

// TestSigner_FaultsAreNeverAnUnsignedAnswer has a server sign with a key behind a URL. While the signer refuses, is
// silent, answers wrongly or closes the connection, every request is refused with 503 and store_unavailable. Once it
// signs, the same intent is decided, and its receipt verifies.
func TestSigner_FaultsAreNeverAnUnsignedAnswer(t *testing.T) {
	t.Parallel()
	key := ed25519.NewKeyFromSeed([]byte(strings.Repeat("k", ed25519.SeedSize)))
	var (
		fault  atomic.Int32
		signed atomic.Int64
	)
	url := serveSigner(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var ask struct {
			Message []byte `json:"message"`
		}
		answer := map[string][]byte{"public_key": key[ed25519.SeedSize:]}
		if r.Method == http.MethodPost {
			if err := json.NewDecoder(r.Body).Decode(&ask); err != nil {
				t.Error(err)
			}
			signed.Add(1)
			time.Sleep(5 * time.Millisecond) // a token on a network
			answer = map[string][]byte{"signature": ed25519.Sign(key, ask.Message)}
			switch signerFault(fault.Load()) {
			case signs:
			case refuses:
				w.WriteHeader(http.StatusInternalServerError)
			case hangs:
				<-r.Context().Done()
				return
			case wrong:
				answer["signature"][0] ^= 1
			case closes:
				panic(http.ErrAbortHandler)
			}
		}
		_ = json.NewEncoder(w).Encode(answer) // who asked may be gone
	}))
	data, token := newData(t)
	p := start(t, data, manyEvaluations(t), "--signing-key", url)
	register(t, p.url, token)
	s := newSender(t, token, 64)
	s.decide(t, p.url, newIntent("bot", "deploy", "k8s/staging/web"))
	for _, f := range []signerFault{refuses, hangs, wrong, closes} {
		fault.Store(int32(f))
		in := newIntent("bot", "deploy", "k8s/staging/web")
		a, err := s.evaluate(p.url, in)
		if err != nil || a.status != http.StatusServiceUnavailable || !strings.Contains(a.body, "store_unavailable") || strings.Contains(a.body, "receipt") {
			t.Errorf("fault %d: evaluate = %d %s, %v, want 503 store_unavailable", f, a.status, a.body, err)
		}
		if status, text := get(t, p.admin+"/readyz"); status != http.StatusServiceUnavailable {
			t.Errorf("fault %d: readyz = %d %s, want 503", f, status, text)
		}
		fault.Store(int32(signs))
		if status, text := get(t, p.admin+"/readyz"); status != http.StatusOK {
			t.Errorf("after fault %d: readyz = %d %s, want 200 before any intent comes", f, status, text)
		}
		verifyReceipt(t, p, s.decide(t, p.url, in).body)
	}
	before := signed.Load()
	const decisions = 640
	together(64, func(int) {
		for range decisions / 64 {
			s.decide(t, p.url, newIntent("bot", "deploy", "k8s/staging/web"))
		}
	})
	if n := signed.Load() - before; n > decisions/4 {
		t.Errorf("%d decisions of 64 callers took %d signatures, want one for many", decisions, n)
	} else {
		t.Logf("%d decisions of 64 callers took %d signatures", decisions, n)
	}
}

// TestSigner_HTTPS has a server sign with a key behind an https URL. It takes a signer that the system trusts alone.
func TestSigner_HTTPS(t *testing.T) {
	t.Parallel()
	by := tlstest.NewAuthority(t)
	cert, err := tls.LoadX509KeyPair(by.Certificate(time.Now().Add(time.Hour)))
	must(t, err)
	key := ed25519.NewKeyFromSeed([]byte(strings.Repeat("k", ed25519.SeedSize)))
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := map[string][]byte{"public_key": key[ed25519.SeedSize:]}
		if r.Method == http.MethodPost {
			var ask map[string][]byte
			if err := json.NewDecoder(r.Body).Decode(&ask); err != nil {
				t.Error(err)
			}
			answer = map[string][]byte{"signature": ed25519.Sign(key, ask["message"])}
		}
		_ = json.NewEncoder(w).Encode(answer) // who asked may be gone
	}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{cert}}
	server.StartTLS()
	t.Cleanup(server.Close)
	data, token := newData(t)
	if out, stderr, code := output(t, command(t, "serve", "--data", string(data), "--signing-key", server.URL)); code != exitFailed ||
		!strings.Contains(stderr, "certificate") {
		t.Errorf("serve with a signer that nothing trusts exits %d: %s%s", code, out, stderr)
	}
	writ, err := released()
	must(t, err)
	p, ready := launchProgram(t, writ, []string{"SSL_CERT_FILE=" + by.File}, data, "--signing-key", server.URL)
	p.serves(t, ready)
	register(t, p.url, token)
	verifyReceipt(t, p, newSender(t, token, 1).decide(t, p.url, newIntent("bot", "deploy", "k8s/staging/web")).body)
}

// TestSigner_SoftHSM has the signer of internal/tools/signer sign with a key that Debian's SoftHSM holds.
func TestSigner_SoftHSM(t *testing.T) {
	if !soaking() {
		t.Skip("SKIPPED without WRIT_SOAK=1: builds internal/tools/signer, in C too")
	}
	t.Parallel()
	if _, err := exec.LookPath("cc"); err != nil {
		t.Skip("SKIPPED: internal/tools/signer needs cgo, and there is no C compiler")
	}
	softhsm := needDebian(t, "usr/bin/softhsm2-util", "softhsm2", "libsofthsm2", "softhsm2-common")
	module := "/usr/lib/softhsm/libsofthsm2.so"
	if softhsm.libs != "" {
		module = filepath.Join(softhsm.libs, "softhsm/libsofthsm2.so")
	}
	bin, dir := buildTool(t, "signer"), t.TempDir()
	must(t, os.Mkdir(filepath.Join(dir, "tokens"), 0o700))
	must(t, os.WriteFile(filepath.Join(dir, "conf"), []byte("directories.tokendir = "+dir+"/tokens\n"), 0o600))
	env := append(os.Environ(), "SOFTHSM2_CONF="+dir+"/conf", "PKCS11_PIN=1234", "LD_LIBRARY_PATH="+softhsm.libs)
	run := func(name string, args ...string) *exec.Cmd {
		cmd := exec.Command(name, args...)
		cmd.Env = env
		return cmd
	}
	socket := filepath.Join(dir, "s")
	for _, cmd := range []*exec.Cmd{
		run(softhsm.path, "--module", module, "--init-token", "--free", "--label", "writ", "--pin", "1234", "--so-pin", "5678"),
		run(bin, "-module", module, "-key", "k1", "-generate"),
	} {
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", cmd, err, out)
		}
	}
	startProgram(t, run(bin, "-module", module, "-key", "k1", "-listen", socket), t.Output())
	waitFor(t, "the signer to listen", func() bool {
		conn, err := net.Dial("unix", socket)
		return err == nil && conn.Close() == nil
	})
	data, token := newData(t)
	p := start(t, data, "--signing-key", "unix:"+socket)
	register(t, p.url, token)
	verifyReceipt(t, p, newSender(t, token, 1).decide(t, p.url, newIntent("bot", "deploy", "k8s/staging/web")).body)
	if _, err := os.Stat(data.SigningKey()); err == nil {
		t.Error("with a signer the data directory has a signing key")
	}
}

// verifyReceipt verifies the receipt of an answer with the keys that the server publishes.
func verifyReceipt(t *testing.T, p *process, body string) {
	t.Helper()
	resp, err := http.Get(p.url + "/.well-known/jwks.json")
	must(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	must(t, err)
	keys, err := receipt.ParseKeys(text)
	must(t, err)
	res, err := receipt.ParseResult([]byte(body))
	must(t, err)
	if err := receipt.Verify(res.Receipt, keys, time.Now()); err != nil {
		t.Errorf("the receipt of %s: %v", body, err)
	}
}

// serveSigner serves h at a Unix socket and returns its URL.
func serveSigner(t *testing.T, h http.Handler) string {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	must(t, err)
	server := &httptest.Server{Listener: l, Config: &http.Server{Handler: h}}
	server.Start()
	t.Cleanup(server.Close)
	return "unix:" + socket
}
