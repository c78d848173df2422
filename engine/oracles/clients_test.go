package oracles

import (
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// seen is a wrong allow that was seen once: a policy, a resource that it must
// not allow, and where a real client ends up that is given the resource.
type seen struct {
	name, allow, block, resource string
	// path is what curl or another client sends of a web URL to HOST, or what the
	// kernel opens, with /etc/passwd as the target below a temporary directory.
	path string
}

var seenOverHTTP = []seen{
	{"an escaped dot before a climb", "", "http://HOST/v1/admin/**", "http://HOST/v1/admin/%2e/../users", "/v1/admin/users"},
	{"the same with an upper-case scheme", "", "http://HOST/v1/admin/**", "HTTP://HOST/v1/admin/%2e/../users", "/v1/admin/users"},
	{"the same with user info", "", "http://HOST/v1/admin/**", "http://user@HOST/v1/admin/%2e/../users", "/v1/admin/users"},
	{"the same with a doubled first slash", "", "http://HOST/v1/admin/**", "http://HOST/./v1/admin/%2e/../users", "/v1/admin/users"},
	{"the same out of what is allowed", "http://HOST/v1/users", "", "http://HOST/v1/admin/%2e/../users", "/v1/admin/users"},
	{"an escaped climb after a dot", "", "http://HOST/v1/admin/**", "http://HOST/v1/admin/x/%2E/../y", "/v1/admin/x/y"},
	{"a query behind a blocked path", "", "http://HOST/v1/admin/secret", "http://HOST/v1/admin/secret?x=1", "/v1/admin/secret"},
	{"a fragment behind a blocked path", "", "http://HOST/v1/admin/secret", "http://HOST/v1/admin/secret#x", "/v1/admin/secret"},
	{"a climb in the query alone", "", "http://HOST/v1/admin/secret", "http://HOST/v1/admin/secret?/../../x", "/v1/admin/secret"},
}

// TestSeenOverHTTP sends each resource with curl, requests, urllib3, Go and node
// to a server that records the path, and holds that writ does not allow it.
func TestSeenOverHTTP(t *testing.T) {
	server := newRecorder(t)
	for _, s := range seenOverHTTP {
		t.Run(s.name, func(t *testing.T) {
			at := func(text string) string { return strings.ReplaceAll(text, "HOST", server.host) }
			reached := server.paths(t, at(s.resource))
			t.Logf("asked for: %v", reached)
			if len(reached[s.path]) == 0 {
				if _, err := exec.LookPath("curl"); err != nil {
					missing(t, "curl")
				}
				t.Errorf("no client asks for %s", s.path)
			}
			checkNotAllowed(t, at(s.allow), at(s.block), at(s.resource))
		})
	}
}

// checkNotAllowed holds that a policy does not allow a resource. An empty
// pattern is none.
func checkNotAllowed(t *testing.T, allow, block, resource string) {
	t.Helper()
	if got := decide(mustPolicy(t, patterns(allow), patterns(block)), resource); got == allowed {
		t.Errorf("allow %q, block %q: %q is allowed", allow, block, resource)
	}
}

// patterns splits at white space.
func patterns(s string) []string { return strings.Fields(s) }

// recorder is a web server that keeps the request targets it is asked for.
type recorder struct {
	host string
	mu   sync.Mutex
	last []string
}

func newRecorder(t *testing.T) *recorder {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &recorder{host: l.Addr().String()}
	server := &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		path, _, _ := strings.Cut(req.RequestURI, "?")
		r.mu.Lock()
		defer r.mu.Unlock()
		r.last = append(r.last, path)
	})}
	go func() { _ = server.Serve(l) }() // ends with the test
	t.Cleanup(func() { server.Close() })
	return r
}

// paths returns which clients ask for which path when they are given a URL.
func (r *recorder) paths(t *testing.T, url string) map[string][]string {
	t.Helper()
	clients := map[string][]string{
		"curl":     {"curl", "-s", url},
		"urllib":   {interpreter(), "-c", "import sys, urllib.request; urllib.request.urlopen(sys.argv[1])", url},
		"urllib3":  {interpreter(), "-c", "import sys, urllib3; urllib3.PoolManager().request('GET', sys.argv[1])", url},
		"requests": {interpreter(), "-c", "import sys, requests; requests.get(sys.argv[1])", url},
		"node":     {"node", "-e", "require('http').get(process.argv[1])", url},
		"fetch":    {"node", "-e", "fetch(process.argv[1].replace(/[^/@]*@/, ''))", url},
	}
	reached := map[string][]string{}
	note := func(name string) {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, path := range r.last {
			reached[path] = append(reached[path], name)
		}
		r.last = nil
	}
	for name, argv := range clients {
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Env = append(os.Environ(), "no_proxy=*", "NO_PROXY=*", "http_proxy=", "HTTP_PROXY=")
		cmd.Run() // a client that is missing or refuses asks for nothing
		note(name)
	}
	if resp, err := http.Get(url); err == nil {
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	note("go")
	return reached
}

var seenOnDisk = []seen{
	{"backslashes count as letters", "/w/d/pub/**", "", `/w/d/pub\a\b\c/../../../etc/passwd`, ""},
	{"backslashes count as letters under a block", "", "/w/etc/**", `/w/pub/x\y/../../etc/passwd`, ""},
	{"escapes count as letters", "", "/w/secret/**", "/w/pub/%2e%2e/../../secret/k", ""},
	{"escapes count as letters, elsewhere allowed", "/w/pub/**", "", "/w/pub/%2e%2e/../../secret/k", ""},
	{"a question mark is a letter", "", "/w/secret/**", "/w/pub/x?/../../secret/k", ""},
	{"a number sign is a letter", "/w/pub/**", "", "/w/pub/x#/../../secret/k", ""},
}

// TestSeenOnDisk opens each path below a temporary directory, where it reaches
// a file that the policy keeps from the agent, and holds that writ does not
// allow it. The directories that the path goes through exist.
func TestSeenOnDisk(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []string{"etc/passwd", "w/etc/passwd", "w/secret/k", "w/pub/readme"} {
		write(t, filepath.Join(root, f))
	}
	for _, s := range seenOnDisk {
		t.Run(s.name, func(t *testing.T) {
			at := func(text string) string {
				if text == "" {
					return ""
				}
				return root + text
			}
			resource := at(s.resource)
			makeWay(t, resource)
			data, err := os.ReadFile(resource)
			if err != nil || string(data) != "secret" {
				t.Fatalf("the kernel opens %q with %q, %v", resource, data, err)
			}
			checkNotAllowed(t, at(s.allow), at(s.block), resource)
			checkNotAllowed(t, fileURL(at(s.allow)), fileURL(at(s.block)), fileURL(resource))
		})
	}
}

func fileURL(path string) string {
	if path == "" {
		return ""
	}
	return "file://" + path
}

// makeWay makes the directories that the kernel asks for when it walks a path:
// each name of it exists, and .. goes to the directory above.
func makeWay(t *testing.T, path string) {
	t.Helper()
	at := "/"
	for _, segment := range strings.Split(path[:strings.LastIndexByte(path, '/')], "/") {
		at = at + "/" + segment
		if err := os.MkdirAll(at, 0o700); err != nil {
			t.Fatal(err)
		}
	}
}

func write(t *testing.T, file string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
}
