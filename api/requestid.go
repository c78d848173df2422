package api

import (
	"crypto/rand"
	"strconv"
	"sync/atomic"

	"writ/engine/condition"
)

const headerRequestID = "X-Request-Id"

// requestIDs makes ids for requests. A request gets one if its caller sent none, or one that is not fit for a log line.
// The ids are unique, not secret. Each is a prefix that is random for each process, and a counter. So an id costs next
// to nothing.
type requestIDs struct {
	prefix string
	n      atomic.Uint64
}

func newRequestIDs() *requestIDs {
	return &requestIDs{prefix: rand.Text()[:12] + "-"}
}

// append appends the caller's id if it is valid, otherwise a new one.
func (r *requestIDs) append(dst, callers []byte) []byte {
	if validRequestID(callers) {
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
