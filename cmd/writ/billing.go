package main

import (
	"errors"
	"log/slog"

	"writ.example/writ/api"
	"writ.example/writ/api/billing"
)

// billingFlags say how plans are sold. Without a key, plans are not sold.
type billingFlags struct {
	Key           string `name:"stripe-key" placeholder:"KEY" help:"Stripe's secret key. With it go stripe-webhook-secret, both prices and portal-url. Prefer the variables for what is secret: a flag shows in the list of processes."`
	WebhookSecret string `name:"stripe-webhook-secret" placeholder:"SECRET" help:"What Stripe signs the events with that it sends to POST /v1/billing/webhook."`
	PricePro      string `name:"stripe-price-pro" placeholder:"ID" help:"Stripe's price of the plan pro."`
	PriceBusiness string `name:"stripe-price-business" placeholder:"ID" help:"Stripe's price of the plan business."`
	URL           string `name:"stripe-url" placeholder:"URL" help:"Address of Stripe's API, such as that of its mock server. Default: Stripe's own."`
}

// check refuses flags if some of them are missing. Half a configuration would take money and
// give no plan. The error quotes none of the flags.
func (f billingFlags) check(portalURL string) error {
	if f == (billingFlags{}) {
		return nil
	}
	for _, flag := range []struct{ name, value string }{
		{"--stripe-key", f.Key},
		{"--stripe-webhook-secret", f.WebhookSecret},
		{"--stripe-price-pro", f.PricePro},
		{"--stripe-price-business", f.PriceBusiness},
		{"--portal-url", portalURL},
	} {
		if flag.value == "" {
			return errors.New(flag.name + ": billing needs it beside the other stripe flags")
		}
	}
	_, err := f.open(noSubscriptions{}, portalURL, nil)
	return err
}

// noSubscriptions stands in for the store while flags are checked.
type noSubscriptions struct{ billing.Subscriptions }

// open returns the seller of plans, or nil if plans are not sold.
func (f billingFlags) open(store billing.Subscriptions, portalURL string, log *slog.Logger) (api.Billing, error) {
	if f.Key == "" {
		return nil, nil //nolint:nilnil // not sold is not an error
	}
	b, err := billing.New(billing.Config{
		Store: store, Key: f.Key, WebhookSecret: f.WebhookSecret, URL: f.URL, PortalURL: portalURL, Log: log,
		Prices: map[string]string{"pro": f.PricePro, "business": f.PriceBusiness},
	})
	if err != nil {
		return nil, err
	}
	return b, nil
}
