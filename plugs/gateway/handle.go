package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"writ.example/writ/internal/tlsfiles"
	"writ.example/writ/internal/toolcall"
	"writ.example/writ/plugs/plug"
	writ "writ.example/writ/sdk/go"
)

const codeRefused = -32001

func fail(code int64, format string, args ...any) *jsonrpc.Error {
	return &jsonrpc.Error{Code: code, Message: plug.OneLine(fmt.Sprintf(format, args...))}
}

// handle answers the requests of clients.
func (g *Gateway) handle(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		switch p := req.GetParams().(type) {
		case *mcp.CallToolParamsRaw:
			return result(g.callTool(ctx, req, p))
		case *mcp.ReadResourceParams:
			return result(g.readResource(ctx, req, p))
		case *mcp.GetPromptParams:
			return result(g.getPrompt(ctx, req, p))
		case *mcp.CompleteParams:
			return result(g.complete(ctx, req, p))
		}
		switch method {
		case "tools/list":
			return result(g.listTools(ctx))
		case "resources/list":
			p, _ := req.GetParams().(*mcp.ListResourcesParams)
			return result(g.listResources(ctx, p))
		case "resources/templates/list":
			p, _ := req.GetParams().(*mcp.ListResourceTemplatesParams)
			return result(g.listTemplates(ctx, p))
		case "prompts/list":
			p, _ := req.GetParams().(*mcp.ListPromptsParams)
			return result(g.listPrompts(ctx, p))
		case "logging/setLevel":
			if err := g.setLevel(ctx, req); err != nil {
				return nil, err
			}
			return next(ctx, method, req)
		case "initialize", "server/discover", "ping", "subscriptions/listen", "notifications/initialized",
			"notifications/cancelled", "notifications/progress", "notifications/roots/list_changed":
			return next(ctx, method, req)
		}
		return nil, fail(jsonrpc.CodeMethodNotFound, "writ does not pass %s on", method)
	}
}

// result keeps a nil result from becoming one that is not nil.
func result[R interface {
	comparable
	mcp.Result
}](r R, err error) (mcp.Result, error) {
	var no *notAllowed
	switch {
	case errors.As(err, &no):
		return nil, fail(codeRefused, "%s", no.text)
	case err != nil:
		return nil, err
	}
	return r, nil
}

// notAllowed is the error of a call that is denied or held.
type notAllowed struct{ text, approval string } //nolint:errname // an outcome, as Denied and Held are

func (n *notAllowed) Error() string { return n.text }

// callTool decides a call of a tool and makes it.
func (g *Gateway) callTool(
	ctx context.Context, req mcp.Request, p *mcp.CallToolParamsRaw,
) (*mcp.CallToolResult, error) {
	t, sum, err := g.tool(ctx, p.Name)
	if err != nil {
		return nil, err
	}
	if t.unpinned != "" {
		return toolError("held: " + t.unpinned), nil
	}
	call, err := toolcall.OfServer(g.config.Server, p.Name, p.Arguments)
	if err == nil {
		err = t.check(call, p.Arguments)
	}
	if err != nil {
		return nil, fail(jsonrpc.CodeInvalidParams, "%v", err)
	}
	call.Stated = maps.Clone(t.hints)
	call.Stated["fact.session.tools_sha256"] = sum
	if err := g.sources.state(req, &call); err != nil {
		return nil, fail(jsonrpc.CodeInvalidParams, "%v", err)
	}
	intents, err := g.intents(t, call)
	if err != nil {
		return nil, fail(jsonrpc.CodeInvalidParams, "%v", err)
	}
	made, err := g.decide(ctx, req, call, intents)
	var no *notAllowed
	if errors.As(err, &no) && no.approval != "" && p.InputResponses == nil {
		var more *mcp.CallToolResult
		if more, err = g.showApproval(ctx, req, no); more != nil {
			return more, nil
		}
		if err == nil { // somebody may have approved it
			made, err = g.decide(ctx, req, call, intents)
		}
	}
	switch {
	case errors.As(err, &no):
		return toolError(no.text), nil
	case err != nil:
		return nil, err
	}
	args := p.Arguments
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	res, err := do(ctx, g, req, made, func(meta mcp.Meta) (*mcp.CallToolResult, error) {
		return g.behind.CallTool(ctx, &mcp.CallToolParams{Meta: meta, Name: p.Name, Arguments: args})
	})
	if err != nil {
		return nil, err
	}
	of := p.Name
	if res.IsError {
		of = "" // what is said of a failure is no record
	}
	if err := g.returned(req, of, plug.Place(call, intents), res.StructuredContent, res.Content...); err != nil {
		return nil, err
	}
	whole := wholeCall
	whole.Meta, whole.Content = res.Meta, res.Content
	whole.StructuredContent, whole.IsError = res.StructuredContent, res.IsError
	if whole.Content == nil {
		whole.Content = []mcp.Content{}
	}
	return &whole, nil
}

// intents returns the intents of a call. The mapping of the settings goes before the server's own.
func (g *Gateway) intents(t *tool, call toolcall.Call) ([]writ.Intent, error) {
	if _, ours := g.plug.Mapping.Tools[call.Tool]; ours || !g.config.AuthZEN || t.authzen == nil {
		return g.plug.Mapping.Intents(call, writ.Intent{})
	}
	return t.authzen.intents(call)
}

func toolError(text string) *mcp.CallToolResult {
	r := wholeCall
	r.Content, r.IsError = []mcp.Content{&mcp.TextContent{Text: text}}, true
	return &r
}

// Results that say of themselves what they are, as revision 2026-07-28 wants it. Earlier ones do not mind. The
// SDK says it only of results of tools that it knows itself.
var (
	wholeCall     = resultOf[mcp.CallToolResult](`{"resultType":"complete","content":[]}`)
	askingCall    = resultOf[mcp.CallToolResult](`{"resultType":"input_required"}`)
	wholeResource = resultOf[mcp.ReadResourceResult](`{"resultType":"complete","contents":[]}`)
	wholePrompt   = resultOf[mcp.GetPromptResult](`{"resultType":"complete","messages":[]}`)
)

func resultOf[R any](text string) (r R) {
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		panic(err) // constant
	}
	return r
}

// skipped is the outcome of an action that was allowed and not done.
const skipped = "skipped"

// do does what was decided, and records it.
func do[R interface {
	comparable
	mcp.Result
}](
	ctx context.Context, g *Gateway, req mcp.Request, made []writ.Decision, ask func(mcp.Meta) (R, error),
) (res R, err error) {
	outcome := writ.Executed
	if err = context.Cause(ctx); err != nil { // the client has cancelled it meanwhile
		outcome = skipped
	} else {
		meta, done := g.pass(ctx, req)
		defer done()
		res, err = ask(meta)
		if call, ok := any(res).(*mcp.CallToolResult); err != nil || ok && call != nil && call.IsError {
			outcome = writ.Failed
		}
	}
	if g.config.Record {
		g.record(ctx, made, outcome)
	}
	return res, err
}

// record records the outcome of decisions. A failure is no error of the client's call, which was made.
func (g *Gateway) record(ctx context.Context, made []writ.Decision, outcome string) {
	ctx = context.WithoutCancel(ctx)
	for _, d := range made {
		if err := g.plug.Client.Record(ctx, writ.Record{DecisionID: d.ID, Outcome: outcome}); err != nil {
			g.say("decision %s was %s, which is not recorded: %v", d.ID, outcome, err)
		}
	}
}

// decide returns the allows for a call, if it may be made.
func (g *Gateway) decide(
	ctx context.Context, req mcp.Request, call toolcall.Call, intents []writ.Intent,
) ([]writ.Decision, error) {
	limit := g.config.Timeout
	if g.config.Wait {
		limit += g.config.Settings.Wait
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("there was no decision within %v", limit))
	defer cancel()
	session, err := g.sessions.of(ctx, req.GetSession())
	if err != nil {
		return nil, g.undecided(fmt.Errorf("opening a session: %w", err))
	}
	for i := range intents {
		intents[i].SessionID = session
	}
	made, err := g.plug.Decide(ctx, g.plug.Key(call, session), g.config.Wait, intents...)
	var denied *writ.Denied
	var held *writ.Held
	switch {
	case err == nil:
		return made, nil
	case errors.As(err, &denied):
		text := plug.OneLine("denied (decision " + denied.Decision.ID + "): " + reasons(denied.Decision))
		return nil, &notAllowed{text: text}
	case errors.As(err, &held):
		text := plug.OneLine("held, approval " + held.Decision.ID + ": " + reasons(held.Decision))
		return nil, &notAllowed{text + "; call again once approved", held.Decision.ID}
	case context.Cause(ctx) != nil:
		err = context.Cause(ctx)
	}
	return nil, g.undecided(err)
}

func reasons(d writ.Decision) string { return strings.Join(d.Reasons, "; ") }

func (g *Gateway) undecided(err error) error {
	err = tlsfiles.Advise(err)
	g.say("could not decide: %v", err)
	return fail(jsonrpc.CodeInternalError, "writ could not decide: %s", strings.TrimPrefix(err.Error(), "writ: "))
}

// ask decides a request that calls no tool. args are what the agent asks with.
func (g *Gateway) ask(
	ctx context.Context, req mcp.Request, method, resource string, args map[string]string,
) ([]writ.Decision, error) {
	call, err := toolcall.OfMethod(g.config.Server, method, args)
	if err != nil {
		return nil, fail(jsonrpc.CodeInvalidParams, "%v", err)
	}
	if err := g.sources.state(req, &call); err != nil {
		return nil, fail(jsonrpc.CodeInvalidParams, "%v", err)
	}
	facts, err := call.Facts()
	if err != nil {
		return nil, fail(jsonrpc.CodeInvalidParams, "%v", err)
	}
	in := writ.Intent{ActionType: call.ActionType(), Resource: resource, Metadata: facts}
	return g.decide(ctx, req, call, []writ.Intent{in})
}

func (g *Gateway) readResource(
	ctx context.Context, req mcp.Request, p *mcp.ReadResourceParams,
) (*mcp.ReadResourceResult, error) {
	made, err := g.ask(ctx, req, "resources/read", p.URI, map[string]string{"uri": p.URI})
	if err != nil {
		return nil, err
	}
	res, err := do(ctx, g, req, made, func(meta mcp.Meta) (*mcp.ReadResourceResult, error) {
		return g.behind.ReadResource(ctx, &mcp.ReadResourceParams{Meta: meta, URI: p.URI})
	})
	if err != nil {
		return nil, err
	}
	if err := g.read(req, p.URI, res.Contents); err != nil {
		return nil, err
	}
	whole := wholeResource
	whole.Meta, whole.Contents, whole.Cacheable = res.Meta, res.Contents, private
	return &whole, nil
}

func (g *Gateway) getPrompt(
	ctx context.Context, req mcp.Request, p *mcp.GetPromptParams,
) (*mcp.GetPromptResult, error) {
	resource := toolcall.PromptResource(g.config.Server, p.Name)
	made, err := g.ask(ctx, req, "prompts/get", resource, p.Arguments)
	if err != nil {
		return nil, err
	}
	res, err := do(ctx, g, req, made, func(meta mcp.Meta) (*mcp.GetPromptResult, error) {
		return g.behind.GetPrompt(ctx, &mcp.GetPromptParams{Meta: meta, Name: p.Name, Arguments: p.Arguments})
	})
	if err != nil {
		return nil, err
	}
	for _, m := range res.Messages {
		if err := g.returned(req, "", "", nil, m.Content); err != nil {
			return nil, err
		}
	}
	whole := wholePrompt
	whole.Meta, whole.Description, whole.Messages = res.Meta, res.Description, res.Messages
	return &whole, nil
}

func (g *Gateway) complete(
	ctx context.Context, req mcp.Request, p *mcp.CompleteParams,
) (*mcp.CompleteResult, error) {
	if p.Ref == nil {
		return nil, fail(jsonrpc.CodeInvalidParams, "ref is missing: want a prompt or a resource")
	}
	args := map[string]string{p.Argument.Name: p.Argument.Value}
	if p.Context != nil {
		for _, name := range slices.Sorted(maps.Keys(p.Context.Arguments)) {
			if _, twice := args[name]; twice {
				return nil, fail(jsonrpc.CodeInvalidParams, "two arguments are called %.200q", name)
			}
			args[name] = p.Context.Arguments[name]
		}
	}
	resource := p.Ref.URI
	if resource == "" {
		resource = toolcall.PromptResource(g.config.Server, p.Ref.Name)
	}
	made, err := g.ask(ctx, req, "completion/complete", resource, args)
	if err != nil {
		return nil, err
	}
	return do(ctx, g, req, made, func(meta mcp.Meta) (*mcp.CompleteResult, error) {
		return g.behind.Complete(ctx, &mcp.CompleteParams{
			Meta: meta, Ref: p.Ref, Argument: p.Argument, Context: p.Context,
		})
	})
}

// private says that nobody may keep an answer for others: another client may see another list.
var private = mcp.Cacheable{CacheScope: "private"}

func (g *Gateway) listResources(ctx context.Context, p *mcp.ListResourcesParams) (*mcp.ListResourcesResult, error) {
	var ask mcp.ListResourcesParams
	if p != nil {
		ask.Cursor = p.Cursor
	}
	res, err := g.behind.ListResources(ctx, &ask)
	if err != nil {
		return nil, err
	}
	res.Cacheable = private
	return res, nil
}

func (g *Gateway) listTemplates(
	ctx context.Context, p *mcp.ListResourceTemplatesParams,
) (*mcp.ListResourceTemplatesResult, error) {
	var ask mcp.ListResourceTemplatesParams
	if p != nil {
		ask.Cursor = p.Cursor
	}
	res, err := g.behind.ListResourceTemplates(ctx, &ask)
	if err != nil {
		return nil, err
	}
	res.Cacheable = private
	return res, nil
}

func (g *Gateway) listPrompts(ctx context.Context, p *mcp.ListPromptsParams) (*mcp.ListPromptsResult, error) {
	var ask mcp.ListPromptsParams
	if p != nil {
		ask.Cursor = p.Cursor
	}
	res, err := g.behind.ListPrompts(ctx, &ask)
	if err != nil {
		return nil, err
	}
	res.Cacheable = private
	return res, nil
}
