package api

import (
	"crypto/rand"
	"crypto/subtle"
	"strconv"
	"sync/atomic"

	"writ.example/writ/engine/condition"
)

const headerRequestID = "X-Request-Id"

// requestIDs makes ids for requests that have none, or whose id is not safe in a log line: it has other
// characters, or is the service token, which a scrubber does not know. The ids are unique, not secret. An id
// is a random prefix of the process and a counter, so making it is cheap.
type requestIDs struct {
	prefix string
	secret []byte // the service token
	n      atomic.Uint64
}

func newRequestIDs(serviceToken string) *requestIDs {
	return &requestIDs{prefix: rand.Text()[:12] + "-", secret: []byte(serviceToken)}
}

// append appends the caller's id if it is valid, otherwise a new one.
func (r *requestIDs) append(dst, callers []byte) []byte {
	if validRequestID(callers) && subtle.ConstantTimeCompare(callers, r.secret) == 0 {
		return append(dst, callers...)
	}
	return strconv.AppendUint(append(dst, r.prefix...), r.n.Add(1), 36)
}

func validRequestID(id []byte) bool {
	if len(id) == 0 || len(id) > condition.MaxName {
		return false
	}
	for _, c := range id {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		case c == '.', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}
