package api

import "net/http"

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
// with. Who verifies may keep them and asks whether they are still the same.
func (s *Server) jwks(r *request) (response, error) {
	if err := r.query.done(); err != nil {
		return response{}, err
	}
	return response{status: http.StatusOK, body: newDocument("application/jwk-set+json", s.cfg.JWKS())}, nil
}
