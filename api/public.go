package api

import (
	_ "embed"
	"net/http"
)

// landingPage is what a browser sees at the root.
//
//go:embed landing.html
var landingPage []byte

// landing answers GET /.
func (s *Server) landing(*request) (response, error) {
	return response{status: http.StatusOK, body: raw{"text/html; charset=utf-8", landingPage}}, nil
}

// health answers GET /health: the process runs. It says nothing of the store;
// /readyz of the admin address does.
func (s *Server) health(*request) (response, error) {
	return response{status: http.StatusOK, body: healthBody{OK: true, Service: "writ"}}, nil
}

type healthBody struct {
	OK      bool   `json:"ok"`
	Service string `json:"service"`
}

// jwks answers GET /.well-known/jwks.json with the keys that receipts verify
// with.
func (s *Server) jwks(*request) (response, error) {
	return response{status: http.StatusOK, body: raw{"application/jwk-set+json", s.cfg.JWKS()}}, nil
}
