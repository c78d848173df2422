package oracles

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// seen is a wrong allow that happened once. It has a policy, a resource that the policy must
// not allow, and the place that a real client reaches with the resource.
type seen struct {
	name, allow, block, resource string
	// path is the path of a web URL that curl or another client sends to HOST. It is empty on
	// disk.
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
	{"every % escaped again beside one that begins no escape", "http://HOST/v1/**", "", "http://HOST/v%31/a%zz", "/v%2531/a%25zz"},
	{"a climb in the query alone", "", "http://HOST/v1/admin/secret", "http://HOST/v1/admin/secret?/../../x", "/v1/admin/secret"},
}

// TestSeenOverHTTP sends each resource with curl, requests, urllib3, urllib, node and Go to a
// server that records the path. It checks that writ does not allow the resource.
func TestSeenOverHTTP(t *testing.T) {
	server := newRecorder(t)
	at := func(i int, text string) string {
		return strings.ReplaceAll(text, "HOST", fmt.Sprintf("%s/case%d", server.host, i))
	}
	var urls []string
	for i, s := range seenOverHTTP {
		urls = append(urls, at(i, s.resource))
	}
	reached := server.paths(urls)
	for i, s := range seenOverHTTP {
		t.Run(s.name, func(t *testing.T) {
			clients := reached[fmt.Sprintf("/case%d%s", i, s.path)]
			if len(clients) == 0 {
				if _, err := exec.LookPath("curl"); err != nil {
					missing(t, "curl")
				}
				t.Errorf("no client asks for %s", s.path)
			}
			t.Logf("%v ask for %s", clients, s.path)
			checkNotAllowed(t, at(i, s.allow), at(i, s.block), at(i, s.resource))
		})
	}
}

// checkNotAllowed checks that a policy does not allow a resource. An empty pattern is left out.
func checkNotAllowed(t *testing.T, allow, block, resource string) {
	t.Helper()
	if got := decide(mustPolicy(t, patterns(allow), patterns(block)), resource); got == allowed {
		t.Errorf("allow %q, block %q: %q is allowed", allow, block, resource)
	}
}

// patterns splits at white space.
func patterns(s string) []string { return strings.Fields(s) }

// recorder is a web server that records the clients of each path.
type recorder struct {
	host string
	mu   sync.Mutex
	seen map[string][]string // the clients by path
}

func newRecorder(t *testing.T) *recorder {
	t.Helper()
	r := &recorder{seen: map[string][]string{}}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		path, _, _ := strings.Cut(req.RequestURI, "?")
		r.mu.Lock()
		defer r.mu.Unlock()
		r.seen[path] = append(r.seen[path], req.UserAgent())
	}))
	t.Cleanup(server.Close)
	r.host = server.Listener.Addr().String()
	return r
}

// each is a Python program. It runs a statement for each URL, even if an earlier one has
// failed.
const each = `import sys
for url in sys.argv[1:]:
    try:
        %s
    except Exception:
        pass`

// paths lets each client request all URLs. It returns the clients by the path that they
// requested. A client that is missing, or that refuses a URL, requests nothing.
func (r *recorder) paths(urls []string) map[string][]string {
	clients := [][]string{
		{"curl", "-s"},
		{interpreter(), "-c", fmt.Sprintf(each, "import urllib.request; urllib.request.urlopen(url)")},
		{interpreter(), "-c", fmt.Sprintf(each, "import urllib3; urllib3.PoolManager(headers={'User-Agent': 'urllib3'}).request('GET', url)")},
		{interpreter(), "-c", fmt.Sprintf(each, "import requests; requests.get(url)")},
		{"node", "-e", "for (const url of process.argv.slice(1)) require('http').get(url, {headers: {'User-Agent': 'node http'}})"},
		{"node", "-e", "for (const url of process.argv.slice(1)) fetch(url.replace(/[^/@]*@/, ''))"},
	}
	var wg sync.WaitGroup
	for _, argv := range clients {
		cmd := exec.Command(argv[0], slices.Concat(argv[1:], urls)...)
		cmd.Env = append(os.Environ(), "no_proxy=*", "NO_PROXY=*")
		wg.Go(func() { _ = cmd.Run() })
	}
	for _, url := range urls {
		if resp, err := http.Get(url); err == nil {
			resp.Body.Close()
		}
	}
	wg.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.seen)
}

var seenOnDisk = []seen{
	{"backslashes count as letters", "/w/d/pub/**", "", `/w/d/pub\a\b\c/../../../etc/passwd`, ""},
	{"backslashes count as letters under a block", "", "/w/etc/**", `/w/pub/x\y/../../etc/passwd`, ""},
	{"escapes count as letters", "", "/w/secret/**", "/w/pub/%2e%2e/../../secret/k", ""},
	{"escapes count as letters, elsewhere allowed", "/w/pub/**", "", "/w/pub/%2e%2e/../../secret/k", ""},
	{"a question mark is a letter", "", "/w/secret/**", "/w/pub/x?/../../secret/k", ""},
	{"a number sign is a letter", "/w/pub/**", "", "/w/pub/x#/../../secret/k", ""},
}

// TestSeenOnDisk opens each path below a temporary directory. The path reaches a file that the
// policy keeps from the agent. The test checks that writ does not allow the path. The directories
// that the path goes through exist.
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
			at := func(prefix, text string) string {
				if text == "" {
					return ""
				}
				return prefix + root + text
			}
			resource := root + s.resource
			makeWay(t, resource)
			data, err := os.ReadFile(resource)
			if err != nil || string(data) != "secret" {
				t.Fatalf("the kernel opens %q with %q, %v", resource, data, err)
			}
			for _, scheme := range []string{"", "file://"} {
				checkNotAllowed(t, at(scheme, s.allow), at(scheme, s.block), scheme+resource)
			}
		})
	}
}

// makeWay makes the directories that the kernel needs when it walks a path. Each name in the
// path exists, and .. leads to the directory above.
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
