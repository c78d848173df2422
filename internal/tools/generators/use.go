// Program generators asks a writ server with the client that oapi-codegen made of api/openapi.yaml.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"time"

	"github.com/google/uuid"

	"writ.example/writ/internal/tools/generators/client"
)

func main() {
	if err := ask(context.Background()); err != nil {
		log.Fatal(err)
	}
}

// ask decides an intent, sends another one under its id, and reads a page of the history.
func ask(ctx context.Context) error {
	c, err := client.NewClientWithResponses(os.Getenv("WRIT_URL"),
		client.WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
			r.Header.Set("Authorization", "Bearer "+os.Getenv("WRIT_API_KEY"))
			return nil
		}))
	if err != nil {
		return err
	}
	policy := uuid.MustParse(os.Getenv("WRIT_POLICY_ID"))
	intent := client.ActionIntent{
		IntentId: uuid.New(), PolicyId: policy, AgentId: os.Getenv("WRIT_AGENT_ID"), ActionType: "payment.refund",
		Resource: "https://api.payments.example/v1/refunds", Cost: &client.Cost{AmountMinor: 1250, Currency: "EUR"},
		IssuedAt: time.Now().UTC().Truncate(time.Second),
	}
	decided, err := c.EvaluateWithResponse(ctx, client.EvaluateJSONRequestBody{PolicyId: policy, Intent: intent})
	if err != nil || decided.JSON200 == nil {
		return errors.Join(err, errors.New("no decision"))
	}
	fmt.Println(decided.JSON200.Approved, decided.JSON200.Decision)
	intent.Cost.AmountMinor++
	refused, err := c.EvaluateWithResponse(ctx, client.EvaluateJSONRequestBody{PolicyId: policy, Intent: intent})
	if err != nil || refused.ApplicationproblemJSON409 == nil {
		return errors.Join(err, errors.New("no 409"))
	}
	fmt.Println(refused.ApplicationproblemJSON409.Status, refused.ApplicationproblemJSON409.Code)
	id := intent.IntentId.String()
	page, err := c.ListAuthorizationsWithResponse(ctx, &client.ListAuthorizationsParams{IntentId: &id})
	if err != nil || page.JSON200 == nil {
		return errors.Join(err, errors.New("no page"))
	}
	for _, row := range page.JSON200.Data {
		fmt.Println(row.Decision, row.DecisionId == decided.JSON200.DecisionId)
	}
	return nil
}
