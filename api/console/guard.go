package console

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// policy is the Content-Security-Policy of every page.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

func secureHeaders(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
}

// https reports whether browsers reach the console over https.
func (c *Console) https() bool { return strings.HasPrefix(c.cfg.PublicURL, "https://") }

// private reports whether nobody but this host can read a request and its answer: browsers use https,
// or the browser is on this host and the name in Host is of this host. Another site can give its own
// name the address of this host, so the address alone proves nothing.
func (c *Console) private(r *http.Request) bool {
	if c.https() || r.TLS != nil {
		return true
	}
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && peer.Addr().Unmap().IsLoopback() && isLoopback(r.Host)
}

func isLoopback(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.Trim(name, "[]")
	if strings.EqualFold(name, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(name)
	return err == nil && addr.Unmap().IsLoopback()
}

// fromForm reports whether a form of the console sent a POST. Browsers set these headers, and no
// script can. A script sends another mode than navigate.
func (c *Console) fromForm(r *http.Request) bool {
	if mode := r.Header.Get("Sec-Fetch-Mode"); mode != "" && mode != "navigate" {
		return false
	}
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" {
		return site == "same-origin"
	}
	origin, err := url.Parse(r.Header.Get("Origin"))
	if err != nil || origin.Host == "" {
		return false
	}
	if c.https() {
		public, err := url.Parse(c.cfg.PublicURL)
		return err == nil && origin.Scheme == public.Scheme && strings.EqualFold(origin.Host, public.Host)
	}
	return strings.EqualFold(origin.Host, r.Host)
}

// below returns the part of a URL that leads to a page of the console, or the console's first page.
func below(next string) string {
	to, err := url.Parse(next)
	if err != nil || to.Scheme != "" || to.Host != "" || to.User != nil || to.Opaque != "" ||
		strings.ContainsFunc(next, func(r rune) bool { return r < ' ' || r == '\\' || r == 0x7f }) ||
		strings.Contains(to.Path, "/.") || strings.Contains(to.Path, "//") || strings.Contains(to.Path, "\\") ||
		to.Path != cookiePath && !strings.HasPrefix(to.Path, cookiePath+"/") {
		return cookiePath
	}
	to.Fragment, to.RawFragment = "", ""
	return to.String()
}
