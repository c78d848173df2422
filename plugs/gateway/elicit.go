package gateway

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// showApproval has the client show its user where a held call is approved, if it can show
// addresses. What the client answers is no approval: only the server says whether there is one. The
// result, if there is one, asks a client of a revision without connections to call again afterwards. An error
// is the held call's: the client shows nothing.
func (g *Gateway) showApproval(ctx context.Context, req mcp.Request, held *notAllowed) (*mcp.CallToolResult, error) {
	call, ok := req.(*mcp.CallToolRequest)
	if !ok || g.config.ApprovalURL == "" {
		return nil, held
	}
	can := call.ClientCapabilities()
	if can == nil || can.Elicitation == nil || can.Elicitation.URL == nil {
		return nil, held
	}
	show := &mcp.ElicitParams{
		Mode: "url", Message: "A person must approve this call: " + held.text,
		URL: g.config.ApprovalURL + held.approval, ElicitationID: held.approval,
	}
	if call.ProtocolVersion() >= newProtocol {
		res := askingCall
		res.InputRequests = mcp.InputRequestMap{"approval": show}
		return &res, nil
	}
	answer, err := call.Session.Elicit(ctx, show)
	if err != nil || answer.Action != "accept" {
		return nil, held
	}
	return nil, nil
}
