package main

import (
	"net/netip"

	"writ/api"
)

// abuseFlags bound what one caller can take of the service.
type abuseFlags struct {
	Credential     api.RateLimit  `name:"rate-limit-credential" default:"100/s:2000" placeholder:"LIMIT" help:"Requests of one API key or operator, except evaluations: a rate and a burst, such as 100/s:2000, 30/m:10 or off."`
	Evaluate       api.RateLimit  `name:"rate-limit-evaluate" default:"off" placeholder:"LIMIT" help:"Evaluations of one API key or operator."`
	Address        api.RateLimit  `name:"rate-limit-address" default:"200/s:2000" placeholder:"LIMIT" help:"Requests of one address without a credential known to be good: public pages, refused credentials, the first use of a good one."`
	TrustedProxies []netip.Prefix `name:"trusted-proxies" placeholder:"CIDR,..." help:"Networks of the proxies in front, whose X-Forwarded-For tells the caller's address."`
}

func defaultAbuse() abuseFlags {
	return abuseFlags{
		Credential: api.RateLimit{Rate: 100, Burst: 2000},
		Address:    api.RateLimit{Rate: 200, Burst: 2000},
	}
}

func (f abuseFlags) rateLimits() api.RateLimits {
	return api.RateLimits{Credential: f.Credential, Evaluate: f.Evaluate, Address: f.Address, TrustedProxies: f.TrustedProxies}
}
