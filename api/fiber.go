package api

import (
	"bytes"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"writ.example/writ/api/wire"
	"writ.example/writ/engine/condition"
	"writ.example/writ/storage"
)

const (
	headerLastEventID = "Last-Event-ID"
	headerReplayed    = "Idempotent-Replayed"
	headerExpired     = "Receipt-Expired"
	headerSignature   = "Stripe-Signature"
)

// read reads everything that the handler of the route needs from the request.
func (r *request) read(fc *fasthttp.RequestCtx, rt *route) (err error) {
	if raw := fc.Request.URI().QueryString(); len(raw) > 0 {
		if r.query, err = parseQuery(string(raw)); err != nil {
			return err
		}
		if rt.method != http.MethodGet && !rt.is(queried) {
			if err := r.query.done(); err != nil {
				return err
			}
		}
	}
	if rt.param != "" {
		if r.param, err = pathParam(r.param); err != nil {
			return err
		}
	}
	if rt.is(conditional) {
		r.ifMatch = string(fc.Request.Header.Peek(fiber.HeaderIfMatch))
		r.ifNoneMatch = string(fc.Request.Header.Peek(fiber.HeaderIfNoneMatch))
	}
	if rt.is(resumable) {
		r.lastEventID = string(fc.Request.Header.Peek(headerLastEventID))
	}
	if rt.is(upgrades) {
		r.lines = rt.method == http.MethodPost
		r.unfit = unfit(fc, r.lines)
	}
	if rt.is(signed) {
		r.signature = string(fc.Request.Header.Peek(headerSignature))
	}
	if rt.method == http.MethodPost && !r.lines || rt.method == http.MethodPatch || rt.method == http.MethodPut {
		if r.body, err = readBody(fc); rt.is(standard) {
			err = asMalformed(err)
		}
	}
	return err
}

// streamsBody reports whether the body of a request is left unread, so that a stream of intents reads its lines.
func streamsBody(h *fasthttp.RequestHeader) bool {
	query, ok := bytes.CutPrefix(h.RequestURI(), []byte(evaluateStreamPath))
	return ok && (len(query) == 0 || query[0] == '?') && wire.HasLines(h)
}

// unfit returns the error of a request that cannot become a stream of intents.
func unfit(fc *fasthttp.RequestCtx, lines bool) error {
	h := &fc.Request.Header
	if !lines {
		if header, want := wire.Unfit(fc, streamProtocol); header != "" {
			return invalid(header, "%s", want)
		}
		return nil
	}
	if enc := h.ContentEncoding(); !streamsBody(h) || len(enc) > 0 && string(enc) != "identity" {
		return mediaProblem("Send the body as Content-Type: " + wire.TypeLines +
			", without Content-Encoding, in HTTP/1.1.")
	}
	return nil
}

// pathParam decodes a path parameter. It returns storage.ErrNotFound if the text cannot be an id.
func pathParam(s string) (string, error) {
	decoded, err := url.PathUnescape(s)
	if err != nil || decoded == "" || len(decoded) > condition.MaxText || !utf8.ValidString(decoded) ||
		strings.ContainsFunc(decoded, unicode.IsControl) {
		return "", storage.ErrNotFound
	}
	return strings.Clone(decoded), nil
}

// readBody returns the body of a request that may have one. The memory of the body is fasthttp's.
func readBody(fc *fasthttp.RequestCtx) ([]byte, error) {
	h := &fc.Request.Header
	body := fc.Request.Body()
	if enc := h.ContentEncoding(); len(enc) > 0 && string(enc) != "identity" {
		return nil, mediaProblem("Send the body without Content-Encoding.")
	}
	if len(body) == 0 {
		return nil, nil
	}
	if t := h.ContentType(); string(t) != typeJSON && !isJSON(string(t)) {
		return nil, mediaProblem("Send the body as Content-Type: application/json, in UTF-8.")
	}
	return body, nil
}

// isJSON reports whether contentType means JSON in UTF-8, in any spelling.
func isJSON(contentType string) bool {
	t, params, err := mime.ParseMediaType(contentType)
	if err != nil || t != typeJSON {
		return false
	}
	charset, ok := params["charset"]
	return !ok || strings.EqualFold(charset, "utf-8")
}

func mediaProblem(detail string) error {
	return refuse(codeMediaType, detail)
}

// sender is a body that is sent after the handler has returned.
type sender interface {
	send(fc *fasthttp.RequestCtx, requestID []byte)
}

func writeResponse(fc *fasthttp.RequestCtx, b *scratch, res response) error {
	out := &fc.Response
	switch body := res.body.(type) {
	case nil:
	case appender:
		out.Header.SetContentType(typeJSON)
		out.SwapBody(body.appendJSON(out.SwapBody(nil)[:0])) // encode directly into the buffer that is sent
	case sender:
		body.send(fc, b.id)
	case fixed:
		res.status = writeFixed(fc, body)
	default:
		data, err := json.Marshal(body, json.FormatNilSliceAsNull(false))
		if err != nil {
			return fmt.Errorf("encoding the response: %w", err)
		}
		out.Header.SetContentType(typeJSON)
		out.SetBodyRaw(data)
	}
	out.SetStatusCode(res.status)
	if res.next != "" {
		out.Header.Set(fiber.HeaderLink, nextLink(fc, res.next))
	}
	if res.etag != "" {
		out.Header.Set(fiber.HeaderETag, res.etag)
	}
	if res.replayed {
		out.Header.Set(headerReplayed, "true")
	}
	if res.retryAfter > 0 {
		out.Header.Set(fiber.HeaderRetryAfter, strconv.Itoa(res.retryAfter))
	}
	if res.expired {
		out.Header.Set(headerExpired, "true")
	}
	return nil
}

// nextLink returns an RFC 8288 link to the next page: the URI of this request with another cursor.
func nextLink(fc *fasthttp.RequestCtx, cursor string) string {
	uri := fc.Request.URI()
	values, err := url.ParseQuery(string(uri.QueryString()))
	if err != nil {
		values = url.Values{} // cannot happen: read has refused such a query
	}
	values.Set("cursor", cursor)
	return "<" + string(uri.PathOriginal()) + "?" + values.Encode() + `>; rel="next"`
}
