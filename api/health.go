package api

import "net/http"

// health answers GET /health: the process runs. The state of the store is in /readyz of
// the admin address.
func (s *Server) health(*request) (response, error) {
	return response{status: http.StatusOK, body: healthBody{OK: true, Service: "writ"}}, nil
}

type healthBody struct {
	OK      bool   `json:"ok"`
	Service string `json:"service"`
}

// jwks answers GET /.well-known/jwks.json with the keys that verify receipts. Clients may
// cache them and revalidate.
func (s *Server) jwks(r *request) (response, error) {
	if err := r.query.done(); err != nil {
		return response{}, err
	}
	return response{status: http.StatusOK, body: newDocument("application/jwk-set+json", s.cfg.JWKS())}, nil
}
