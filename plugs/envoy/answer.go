package envoy

import (
	"encoding/json"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"

	writ "writ.example/writ/sdk/go"
)

// refusal is the body of a refused request.
type refusal struct {
	Decision   string   `json:"decision"` // deny, approval_required, or undecided
	DecisionID string   `json:"decision_id,omitempty"`
	Reasons    []string `json:"reasons"`
}

// allow lets a request pass. A message that needs no decision passes with none.
func allow(d writ.Decision) *authv3.CheckResponse {
	ok := &authv3.OkHttpResponse{HeadersToRemove: []string{headerApproval}}
	if d.ID != "" {
		ok.Headers = []*corev3.HeaderValueOption{header(headerDecision, d.ID)}
	} else {
		ok.HeadersToRemove = append(ok.HeadersToRemove, headerDecision)
	}
	return &authv3.CheckResponse{
		Status:       &rpcstatus.Status{Code: int32(codes.OK)},
		HttpResponse: &authv3.CheckResponse_OkResponse{OkResponse: ok},
	}
}

func deny(d writ.Decision) *authv3.CheckResponse {
	return refuse(refusal{d.Outcome, d.ID, d.Reasons}, header(headerDecision, d.ID))
}

func hold(d writ.Decision) *authv3.CheckResponse {
	return refuse(refusal{d.Outcome, d.ID, d.Reasons}, header(headerDecision, d.ID), header(headerApproval, d.ID))
}

func undecided(err error) *authv3.CheckResponse {
	return refuse(refusal{Decision: "undecided", Reasons: []string{why(err)}})
}

// refuse answers with 403. Envoy sends the response to its client.
func refuse(r refusal, headers ...*corev3.HeaderValueOption) *authv3.CheckResponse {
	body, err := json.Marshal(r)
	if err != nil {
		body = nil // cannot happen: it has texts alone
	}
	return &authv3.CheckResponse{
		Status: &rpcstatus.Status{Code: int32(codes.PermissionDenied)},
		HttpResponse: &authv3.CheckResponse_DeniedResponse{DeniedResponse: &authv3.DeniedHttpResponse{
			Status:  &typev3.HttpStatus{Code: typev3.StatusCode_Forbidden},
			Headers: append(headers, header("content-type", "application/json"), header("cache-control", "no-store")),
			Body:    string(body),
		}},
	}
}

func header(name, value string) *corev3.HeaderValueOption {
	return &corev3.HeaderValueOption{
		Header:       &corev3.HeaderValue{Key: name, Value: value},
		AppendAction: corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD,
	}
}
