package api

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"
)

// document is a body that stays the same as long as the process runs: a page,
// a file of a page or the description of the interface.
type document struct {
	contentType string
	bytes       []byte
	etag        string
	policy      string // its Content-Security-Policy; empty keeps the one of every response
}

func newDocument(contentType string, data []byte) document {
	sum := sha256.Sum256(data)
	return document{contentType: contentType, bytes: data, etag: `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`}
}

// writeDocument sends d, or 304 where the caller has it already, and returns
// the status. Caches may keep it and must ask whether it is still the same: a
// new release shows at once. A cache puts the headers of a 304 in place of those
// it keeps (RFC 9111, section 3.2), so both have the same.
func writeDocument(fc *fasthttp.RequestCtx, d document) int {
	h := &fc.Response.Header
	h.Set(fiber.HeaderETag, d.etag)
	h.Set(fiber.HeaderCacheControl, "public, no-cache")
	if d.policy != "" {
		h.Set(fiber.HeaderContentSecurityPolicy, d.policy)
	}
	if hasETag(fc.Request.Header.Peek(fiber.HeaderIfNoneMatch), d.etag) {
		return http.StatusNotModified
	}
	h.SetContentType(d.contentType)
	fc.Response.SetBodyRaw(d.bytes)
	return http.StatusOK
}

func hasETag(header []byte, etag string) bool {
	for tag := range bytes.SplitSeq(header, []byte(",")) {
		t := strings.TrimPrefix(string(bytes.TrimSpace(tag)), "W/")
		if t == etag || t == "*" {
			return true
		}
	}
	return false
}
