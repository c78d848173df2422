package api

import (
	"net/http"
	"time"

	"writ/decision"
)

// coreProblem is not logged for each request: the core does so, at a bounded
// rate.
func coreProblem(e *decision.CoreError) *problem {
	return &problem{
		Status: http.StatusInternalServerError, Code: codeCoreUnavailable,
		Detail:     "The evaluation core of this deployment made no decision. Nothing was allowed.",
		retryAfter: int((e.RetryAfter() + time.Second - 1) / time.Second),
	}
}
