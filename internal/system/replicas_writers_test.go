package system

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"
)

// writingTenants runs two replicas beside 48 organizations that each write some new versions of a policy a second. No
// intent of another organization may pass its kill switch, and the history must be complete.
func writingTenants(t *testing.T, c *cluster) {
	if !soaking() {
		t.Skip("SKIPPED but for make soak: writes on every processor")
	}
	const organizations = 48
	underLoad(t, c, func(l *replicaLoad) {
		var written, refused atomic.Int64
		var releases []func()
		for i := range organizations {
			org, url, version := fmt.Sprint("org-", i), c.replicas[i%len(c.replicas)].url, 0
			release := background(t, 1, signed(t, c.data, org), func(s sender) bool {
				version++
				got, err := s.send(http.MethodPost, url+"/v1/policies/register", []byte(encode(t, policyOf(org, version))))
				switch {
				case err == nil && got.status == http.StatusCreated:
					written.Add(1)
				case err == nil && got.status == http.StatusServiceUnavailable && got.retryAfter != "":
					refused.Add(1)
				default:
					t.Errorf("registering version %d of the policy of %s = %d %s, %v", version, org, got.status, got.body, err)
					return false
				}
				time.Sleep(100 * time.Millisecond) // everything shares a few processors
				return true
			})
			t.Cleanup(release)
			releases = append(releases, release)
		}
		l.await(t, between)
		for _, release := range releases {
			release()
		}
		t.Logf("%d organizations have written %d documents meanwhile; %d writes were refused", organizations, written.Load(), refused.Load())
		if written.Load() < organizations {
			t.Errorf("%d documents were written, want one or more of each of %d organizations", written.Load(), organizations)
		}
	})
}
