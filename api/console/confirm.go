package console

import (
	"errors"
	"net/http"
)

// confirm is the second step of what cannot be taken back: a page with one form.
type confirm struct {
	Question string
	Text     string
	Action   string // where the form is sent
	Button   string
	Stops    bool // whether the button stops something
	Revision string
	Back     string
}

func (v *visit) confirm(current string, c confirm) error {
	return v.show("confirm", c.Question, current, c)
}

// sure tells a change that was refused from one of which nobody knows whether it happened.
func sure(err error) bool {
	var p *problem
	return errors.As(err, &p) && p.Status < http.StatusInternalServerError
}

// unsure answers a change that may have happened.
func (v *visit) unsure(what string, err error) error {
	if err == nil || sure(err) {
		return err
	}
	return &problem{
		Status: http.StatusServiceUnavailable, Code: "unconfirmed",
		Detail: "It could not be confirmed that " + what + ". Do it again: it does no harm if it was done. (" +
			err.Error() + ")",
	}
}

// unchanged refuses a form that was made for another state than there is.
func unchanged(what, shown, is string) error {
	if shown == is {
		return nil
	}
	return stale(what + " has changed since the page was shown: it was " + quoted(shown) + " and is " + quoted(is) +
		". Nothing was changed.")
}
