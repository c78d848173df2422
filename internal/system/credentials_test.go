package system

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// TestLogsHoldNoCredential checks that the process logs no credential. It sends valid and invalid
// credentials in every place that clients use. Some of these requests are malformed, refused or
// fail.
func TestLogsHoldNoCredential(t *testing.T) {
	data, operator := newData(t)
	const serviceToken = "service-token-that-nobody-may-read"
	t.Setenv("WRIT_SERVICE_TOKEN", serviceToken)
	p := start(t, data)
	register(t, p.url, operator)
	c := newClient(t, p.url, operator)
	var made struct {
		Token string `json:"token"`
		ID    string `json:"id"`
	}
	c.do(t, http.MethodPost, "/v1/tokens", `{"name":"gateway"}`, http.StatusCreated, &made)
	secrets := map[string]string{
		"API key": made.Token, "operator token": operator, "service token": serviceToken,
		"an operator's signature": operator[strings.LastIndex(operator, ".")+1:], "a key's secret": made.Token[29:],
	}
	addr := strings.TrimPrefix(p.url, "http://")
	for _, token := range []string{made.Token, operator, serviceToken} {
		for _, request := range []string{
			"GET /v1/rules HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer TOKEN\r\n\r\n",
			"GET /v1/ops/usage HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer TOKEN\r\n\r\n",
			"GET /v1/rules HTTP/1.1\r\nHost: x\r\nAuthorization: TOKEN\r\n\r\n",
			"GET /v1/rules HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer TOKEN TOKEN\r\n\r\n",
			"GET /v1/rules HTTP/1.1\r\nHost: x\r\nX-Request-Id: TOKEN\r\n\r\n",
			"GET /v1/rules?access_token=TOKEN HTTP/1.1\r\nHost: x\r\n\r\n",
			"GET /TOKEN HTTP/1.1\r\nHost: x\r\n\r\n",
			"TOKEN / HTTP/1.1\r\nHost: x\r\n\r\n",
			"TOKEN\r\n\r\n",
			"GET /v1/rules HTTP/1.1\r\nHost: x\r\nTOKEN\r\n\r\n",
			"GET /v1/rules HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer TOKEN\x00\r\n\r\n",
			"GET /v1/rules HTTP/1.1\r\nHost: x\r\nAuthorization : Bearer TOKEN\r\nContent-Length: x\r\n\r\n",
			"POST /v1/rules HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer TOKEN\r\nContent-Length: -1\r\n\r\n",
			"POST /v1/rules HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer TOKEN\r\nTransfer-Encoding: chunked\r\n\r\nTOKEN",
			"POST /v1/policy/evaluate HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer TOKEN\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{\"TOKEN\":",
			"GET / HTTP/1.1\r\nHost: x\r\nX-Big: TOKEN" + strings.Repeat("a", 20<<10) + "\r\n\r\n",
		} {
			exchange(t, addr, strings.ReplaceAll(request, "TOKEN", token))
		}
	}
	p.stop(t)
	for name, secret := range secrets {
		if log := p.stderr.String(); strings.Contains(log, secret) {
			t.Errorf("the log holds the %s:\n%s", name, log)
		}
	}
}

// exchange sends a request, closes the sending side, and reads the answer.
func exchange(t *testing.T, addr, request string) {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	must(t, err)
	defer c.Close()
	if _, err := io.WriteString(c, request); err != nil {
		t.Fatal(err)
	}
	must(t, c.(*net.TCPConn).CloseWrite())
	if _, err := io.Copy(io.Discard, c); err != nil {
		t.Fatal(fmt.Errorf("reading the answer to %.40q: %w", request, err))
	}
}
