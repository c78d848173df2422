package remote

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"writ.example/writ/authoring/workspace"
)

const organizationPath = "/v1/organization/status"

// organizationStatus is the answer of organizationPath.
type organizationStatus struct {
	Status    string    `json:"status"`
	StoppedAt time.Time `json:"stopped_at,omitzero"`
	StoppedBy string    `json:"stopped_by,omitzero"`
}

// The statuses of an organization.
const (
	active  = "active"
	stopped = "stopped"
)

// Stop stops everything: whatever the organization's agents ask is denied on every replica then.
func Stop(ctx context.Context, call workspace.Call) (jsontext.Value, error) {
	return setOrganization(ctx, call, stopped)
}

// Resume ends the stop.
func Resume(ctx context.Context, call workspace.Call) (jsontext.Value, error) {
	return setOrganization(ctx, call, active)
}

func setOrganization(ctx context.Context, call workspace.Call, status string) (jsontext.Value, error) {
	doc, err := send(ctx, call, http.MethodPatch, organizationPath, map[string]string{"status": status})
	var is organizationStatus
	if err == nil {
		err = decode(doc, &is)
	}
	switch {
	case err != nil && !told(err):
		return nil, fmt.Errorf("%w\nit is not known whether the organization is %s now: try again", err, status)
	case err != nil:
		return nil, err
	case is.Status != status:
		return nil, fmt.Errorf("the server answers that the organization is %q", is.Status)
	}
	return doc, nil
}

// OrganizationChanged says what became of the organization.
func OrganizationChanged(w io.Writer, doc jsontext.Value) error {
	var is organizationStatus
	if err := decode(doc, &is); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "the organization is %s, in force on every replica\n", is)
	return err //nolint:wrapcheck // of the standard output
}

// String says what the status is, and of a stop since when and by whom.
func (o organizationStatus) String() string {
	if o.Status != stopped {
		return o.Status
	}
	return fmt.Sprintf("stopped since %s by %s", Time(o.StoppedAt), o.StoppedBy)
}
