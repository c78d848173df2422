// Command go is a gateway before a payment API: POST /refunds {"order": "A-1", "charge": "ch_1", "amount": 1250}.
//
// 200 is the refund, 403 a deny, 202 a hold: send the same request again once it is approved. An order is
// refunded once, however often it is sent.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/url"
	"os"
	"strings"

	writ "writ.example/writ/sdk/go"
)

func pay(ctx context.Context, order, charge string, amount int64) (refund map[string]any, err error) {
	form := strings.NewReader(url.Values{"charge": {charge}, "amount": {fmt.Sprint(amount)}}.Encode())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, os.Getenv("PAYMENTS_URL")+"/v1/refunds", form)
	if err != nil {
		return nil, err
	}
	req.Header = http.Header{"Content-Type": {"application/x-www-form-urlencoded"},
		"Authorization": {"Bearer " + os.Getenv("PAYMENTS_KEY")}, "Idempotency-Key": {order}}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the payment API answers %d", resp.StatusCode)
	}
	return refund, json.NewDecoder(resp.Body).Decode(&refund)
}

func main() {
	client, err := writ.New(writ.Config{}) // WRIT_URL, WRIT_API_KEY, WRIT_POLICY_ID, WRIT_AGENT_ID
	if err != nil {
		log.Fatal(err)
	}
	http.HandleFunc("POST /refunds", func(w http.ResponseWriter, r *http.Request) {
		var o struct {
			Order, Charge string
			Amount        int64
		}
		if err := json.NewDecoder(r.Body).Decode(&o); err != nil || o.Order == "" || o.Charge == "" {
			http.Error(w, "want order, charge and amount", http.StatusBadRequest)
			return
		}
		refund, err := writ.GuardWait(r.Context(), client, 0, writ.Intent{
			ActionType: "payment.refund", Resource: "https://api.payments.example/v1/refunds", Key: o.Order,
			Cost:     &writ.Cost{AmountMinor: o.Amount, Currency: "EUR"},
			Metadata: map[string]string{"order": o.Order, "charge": o.Charge},
		}, func(ctx context.Context) (map[string]any, error) { return pay(ctx, o.Order, o.Charge, o.Amount) })
		switch {
		case err == nil:
			_ = json.NewEncoder(w).Encode(refund)
		case errors.As(err, new(*writ.Denied)):
			http.Error(w, err.Error(), http.StatusForbidden)
		case errors.As(err, new(*writ.Held)):
			http.Error(w, err.Error(), http.StatusAccepted)
		case errors.Is(err, writ.ErrAlreadyRedeemed):
			http.Error(w, err.Error()+": look whether the order was refunded", http.StatusConflict)
		default:
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	})
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), nil))
}
