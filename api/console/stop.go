package console

import (
	"net/http"
	"time"
)

// organization is whether an organization is stopped.
type organization struct {
	Status    string    `json:"status"` // active or stopped
	StoppedAt time.Time `json:"stopped_at"`
	StoppedBy string    `json:"stopped_by"`
}

// stopped is the value of organization.Status that stops everything.
const stopped = "stopped"

func (v *visit) askStop() error {
	var body struct {
		It   organization
		Done bool // whether a form has just led to this
	}
	if err := v.get(under("organization", "status"), &body.It); err != nil {
		return err
	}
	body.Done = v.r.URL.Query().Get("done") == body.It.Status
	title := "Stop everything?"
	switch {
	case body.It.Status == stopped:
		title = "Everything is stopped"
	case body.Done:
		title = "Everything goes on"
	}
	return v.show("stopping", title, "", body)
}

// stop stops everything or resumes. Stopping is never refused for having been shown stale.
func (v *visit) stop() error {
	if err := v.form(); err != nil {
		return err
	}
	to := v.r.PostForm.Get("status")
	if to != stopped {
		var is organization
		if err := v.get(under("organization", "status"), &is); err != nil {
			return err
		}
		if err := unchanged("The organization", v.r.PostForm.Get("revision"), is.State()); err != nil {
			return err
		}
	}
	err := v.do(http.MethodPatch, under("organization", "status"), map[string]string{"status": to}, nil)
	if err := v.unsure("the organization is "+to+" on every replica", err); err != nil {
		return err
	}
	return v.to("/console/stop?done=" + to)
}

// State is what a form to resume is about: this stop and no other one.
func (o organization) State() string { return o.Status + " " + o.StoppedAt.Format(time.RFC3339Nano) }
