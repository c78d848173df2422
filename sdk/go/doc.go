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
// Require returns without an error for an allow alone. Evaluate also returns decisions that are not
// allowed. A [Decision] is allowed only if the server answered 200 with approved: true and a receipt
// that says allow and is in force. Every other answer, and every failure, is an error or a decision
// whose Allowed is false. The zero Decision is not allowed.
//
// # Repeated requests
//
// A server decides an intent once. So Evaluate may safely repeat a request: it sends the same bytes at
// most three times, if the connection fails or the server asks for it. It gives up after
// [Config.Timeout] in all. Requests that create or change something are sent once. Redirects are not
// followed.
//
// # Held actions
//
// A decision of approval_required is a [Held] error of Require. Held.Wait waits for the verdict of an
// approver and redeems the approval. The approval fits the same intent alone, so a program that waits
// across a restart keeps the Held as JSON.
package writ
