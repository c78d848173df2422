package api

import (
	"net/http"
	"time"
)

// namedSummary is a document with a name, a list or a library, without its content.
type namedSummary struct {
	Name      string    `json:"name"`
	Version   int64     `json:"version"`
	Count     int       `json:"count"`
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
}

// mayPut reports whether If-Match and If-None-Match allow a change of a document with a name. updated
// is the time of the document's last change, or nil if there is no document.
func (r *request) mayPut(updated *time.Time) bool {
	if updated == nil {
		return r.ifMatch == ""
	}
	return r.matches(*updated) && r.ifNoneMatch == ""
}

// answerPut answers with a document that was stored: 201 if it was created, else 200.
func (r *request) answerPut(doc any, created bool) error {
	status := http.StatusOK
	if created {
		status = http.StatusCreated
	}
	return r.answer(status, doc)
}
