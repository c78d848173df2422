package main

import (
	"fmt"
	"net/netip"

	"writ.example/writ/api"
	"writ.example/writ/api/limit"
)

// limitFlags limit how much of the service one caller can use.
type limitFlags struct {
	Credential     limit.Rate     `name:"rate-limit-credential" default:"100/s:2000" placeholder:"LIMIT" help:"Requests of one API key or operator, except evaluations: a rate and a burst, such as 100/s:2000, 30/m:10 or off."`
	Evaluate       limit.Rate     `name:"rate-limit-evaluate" default:"off" placeholder:"LIMIT" help:"Evaluations of one API key or operator."`
	Changes        limit.Rate     `name:"rate-limit-changes" default:"10/s:2000" placeholder:"LIMIT" help:"Policies, rules, keys and agents that one organization makes, changes or enables. Disabling, revoking and deleting are never refused."`
	Address        limit.Rate     `name:"rate-limit-address" default:"200/s:2000" placeholder:"LIMIT" help:"Requests of one address without a credential known to be good: public pages, refused credentials, the first use of a good one."`
	Connections    int            `name:"connections-per-address" default:"4096" placeholder:"N" help:"Connections that one address may have open; more are closed at once. Trusted proxies have no such limit."`
	TrustedProxies []netip.Prefix `name:"trusted-proxies" placeholder:"CIDR,..." help:"Networks of the proxies in front, whose X-Forwarded-For tells the caller's address."`
}

func (f limitFlags) rateLimits() api.RateLimits {
	return api.RateLimits{Credential: f.Credential, Evaluate: f.Evaluate, Changes: f.Changes, Address: f.Address,
		TrustedProxies: f.TrustedProxies}
}

// check refuses a bound that admits nobody or bounds nothing.
func (f limitFlags) check() error {
	if most := api.DefaultLimits().Connections; f.Connections < 1 || f.Connections > most {
		return fmt.Errorf("--connections-per-address: want 1 to %d, which is all there are", most)
	}
	return nil
}
