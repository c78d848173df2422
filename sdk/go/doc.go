// Package writ asks a writ server whether an agent's action may proceed, before the action happens.
//
//	client, err := writ.New(writ.Config{}) // WRIT_URL, WRIT_API_KEY, WRIT_POLICY_ID, WRIT_AGENT_ID
//	...
//	_, err = client.Require(ctx, writ.Intent{ActionType: "payment.refund", Resource: "https://api.example/refunds"})
//	if err != nil {
//		return err // denied, held or not decided: the action must not run
//	}
//	// the action runs here
//
// Require returns an error unless the decision is an allow. Evaluate returns denied and held decisions
// without an error. A [Decision] is allowed only if the server answered 200 with approved: true and a
// receipt that says allow and has not expired. Every other answer, and every failure, is an error or a
// decision whose Allowed is false. The zero Decision is not allowed.
//
// # Repeated requests
//
// A server decides an intent once, so Evaluate can safely repeat a request. If the connection fails or the
// server asks for it, Evaluate sends the same bytes again, at most three times in all and within
// [Config.Timeout]. Requests that create or change something else are sent once. Redirects are not
// followed.
//
// # Held actions
//
// For a decision of approval_required, Require returns a [Held] error. [Client.Wait] waits for the verdict of
// an approver and redeems the approval. The approval is good for the same intent alone, so a program that
// waits across a restart keeps the Held as JSON.
package writ
