// Package envoy decides the requests that pass through an Envoy proxy. It is a server of Envoy's
// external authorization (ext_authz) over gRPC.
//
// # Intents
//
// A request is an intent whose action type is http_ and the method in lower case, such as http_get, and
// whose resource is the URL that Envoy sends on. Who asks is never read from the request, whose every
// header the client can set: the policy, the agent and the API key are settings of the [Authorizer], or of
// Envoy's route (context_extensions policy_id, agent_id and api_key). An intent's id is random.
//
// # Answers
//
// A request passes if its decision is an allow in force. The upstream gets the decision's id in the
// header x-writ-decision. Any other request is answered with 403 and the reasons. A held one also has the
// header x-writ-approval: the same request with that header, once approved, redeems the approval, once.
// A request about which there is no decision is answered with 403 as well.
package envoy
