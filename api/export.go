package api

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"runtime/debug"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"writ.example/writ/decision/admission"
	"writ.example/writ/storage"
)

// exportPage is the number of rows that are read and written at a time. They take about 100 KiB.
const exportPage = 256

// exportAuthorizations streams the history as CSV in the format of csvHeader. It omits decisions
// made after the export began.
func (s *Server) exportAuthorizations(r *request) error {
	plan, err := s.plan(r)
	if err != nil {
		return err
	}
	if !plan.CSVExport {
		return refuse(codeExportNotEntitled,
			"Your plan does not include the CSV export of the authorization history. The business plan does.")
	}
	f := s.filter(r)
	if err := r.query.done(); err != nil {
		return err
	}
	of, err := s.rows(r)
	if err != nil {
		return err
	}
	of.narrow(&f)
	end, ok := s.exports.Begin(r.who.org)
	if !ok {
		return refuseWith(problem{Code: codeTooManyExports, retryAfter: 5,
			Detail: "Too many exports are under way. Try again when one has ended."})
	}
	e := &export{s: s, org: r.who.org, end: end, filter: f, of: of, first: []byte(csvHeader), name: "authorizations-" +
		r.now.UTC().Format(time.DateOnly) + ".csv", contentType: "text/csv; charset=utf-8; header=present"}
	e.page = e.csvPage
	begun := false
	defer func() {
		if !begun { // the handler failed or panicked
			end()
		}
	}()
	// The first page is read before the response begins. A failing store therefore gives a 500 and
	// not a truncated file.
	if err := e.page(r.ctx); err != nil {
		return err
	}
	begun = true
	return r.ok(e)
}

// export is the body of an export. The goroutine of the connection reads and closes the export
// after the handler has returned. So export must not refer to memory of Fiber.
//
// fasthttp reads a body 4 KiB at a time and sends each piece at once as a chunk (RFC 9112, section
// 7.1). The system calls would take a third of the time. Therefore export returns only the header
// line to fasthttp. fasthttp has sent that line when it reads again. From then on export writes to
// the connection itself, one chunk for each page.
type export struct {
	s      *Server
	org    string
	end    func() // releases this export's place among maxExports
	filter storage.Filter
	of     *rowsOf

	name, contentType string
	first             []byte                          // what fasthttp reads
	page              func(ctx context.Context) error // appends a page to rows.buf, and sets last

	begun bool // whether fasthttp has read the header line
	rows  csvRows
	next  string // the cursor of the next page
	last  bool   // whether there is no next page

	requestID string
	conn      net.Conn
	unwatch   func() bool // unregisters the callback that aborts writes at shutdown
}

// send makes e the body of fc's response, or ends e for a HEAD.
func (e *export) send(fc *fasthttp.RequestCtx, requestID []byte) {
	h := &fc.Response.Header
	h.SetContentType(e.contentType)
	h.Set(fiber.HeaderContentDisposition, `attachment; filename="`+e.name+`"`)
	if fc.Request.Header.IsHead() {
		// fasthttp would end the headers of a stream twice.
		h.SetContentLength(-1)
		e.end()
		return
	}
	e.requestID = string(requestID)
	e.conn = fc.Conn()
	e.unwatch = context.AfterFunc(e.s.deadlines.base, func() {
		// This aborts a stuck write, so that the write does not delay the shutdown. If setting the
		// deadline fails, the connection is closed, which ends the write too.
		_ = e.conn.SetWriteDeadline(time.Unix(1, 0))
	})
	fc.Response.SetBodyStream(e, -1)
}

// Read implements io.Reader. After an error other than io.EOF, fasthttp omits the last chunk. A
// client thus notices that the file is incomplete.
func (e *export) Read(p []byte) (n int, err error) {
	if !e.begun {
		e.begun = true
		return copy(p, e.first), nil // p is large enough: fasthttp reads 4 KiB
	}
	defer func() {
		if p := recover(); p != nil {
			e.s.metrics.panics.Inc()
			err = fmt.Errorf("%w\n%s", &panicError{value: p}, debug.Stack())
			e.log(err)
		}
	}()
	for {
		if err := e.flush(); err != nil {
			return 0, err // the client or a shutdown caused err
		}
		if e.last {
			return 0, io.EOF
		}
		if err := e.nextPage(); err != nil {
			e.log(err)
			return 0, err
		}
	}
}

func (e *export) log(err error) {
	e.s.cfg.Log.Error("an export was cut off", slog.String("request_id", e.requestID),
		slog.String("error", err.Error()))
}

// chunkStart reserves the place for the size in front of a chunk.
const chunkStart = "00000000\r\n"

// flush sends the rows as one chunk. Sending a chunk may take as long as sending a whole response.
func (e *export) flush() error {
	size := len(e.rows.buf) - len(chunkStart)
	if size <= 0 {
		return e.s.deadlines.base.Err()
	}
	copy(e.rows.buf, fmt.Sprintf("%08x", size))
	e.rows.buf = append(e.rows.buf, "\r\n"...)
	if err := e.conn.SetWriteDeadline(time.Now().Add(e.s.cfg.Limits.Write)); err != nil {
		return fmt.Errorf("allowing time to write: %w", err)
	}
	// This check must follow SetWriteDeadline. If the server gave up before, that call has
	// overwritten the deadline that unwatch's callback set.
	if err := e.s.deadlines.base.Err(); err != nil {
		return err
	}
	_, err := e.conn.Write(e.rows.buf)
	e.rows.buf = e.rows.buf[:0]
	return err
}

// nextPage appends a page of rows. It takes a slot for each page. A slow client therefore does not
// use up slots of the organization.
func (e *export) nextPage() error {
	ctx := e.s.deadlines.base
	slot, verdict := e.s.decisions.Gate.Enter(ctx, admission.Work{Org: e.org, Kind: admission.Managing, Patient: true})
	if verdict != admission.Admitted {
		return ctx.Err()
	}
	defer slot.Leave()
	return e.page(ctx)
}

// csvPage appends a page of rows. The page may be empty.
func (e *export) csvPage(ctx context.Context) error {
	e.beginChunk()
	records, next, err := e.s.store.ListRecords(ctx, e.org, e.filter,
		storage.Page{Limit: exportPage, After: e.next})
	if err != nil {
		return fmt.Errorf("exporting authorizations: %w", err)
	}
	for _, r := range records {
		if e.of.has(r) {
			e.rows.record(r)
		}
	}
	e.next, e.last = next, next == ""
	return nil
}

func (e *export) beginChunk() {
	if len(e.rows.buf) == 0 {
		e.rows.buf = append(e.rows.buf, chunkStart...)
	}
}

// Close implements io.Closer.
func (e *export) Close() error {
	e.unwatch()
	e.end()
	return nil
}
