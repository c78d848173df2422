package console

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// token is an API key.
type token struct {
	ID        string     `json:"id"`
	Name      string     `json:"name"`
	Token     string     `json:"token"`
	Scopes    []string   `json:"scopes"`
	CreatedAt time.Time  `json:"createdAt"`
	ExpiresAt *time.Time `json:"expiresAt"`
	AgentID   string     `json:"agent_id"`
	PolicyID  string     `json:"policy_id"`
}

// tokens reads every key.
func (v *visit) tokens() (found []*token, err error) {
	found, _, err = all[*token](v, under("tokens"), url.Values{})
	return found, err
}

func (v *visit) keys() error {
	var body struct {
		Keys    []*token
		Lacks   string
		Revoked string // the key that a form has just revoked
	}
	var err error
	body.Keys, err = v.tokens()
	if body.Lacks, err = lacks(err); err != nil {
		return err
	}
	gone := v.r.URL.Query().Get("revoked")
	if body.Lacks == "" && !slices.ContainsFunc(body.Keys, func(k *token) bool { return k.ID == gone }) {
		body.Revoked = gone
	}
	return v.show("keys", "Keys", "Keys", body)
}

// revision stands for all keys that there are. A form that makes a key carries it: sent twice, it finds
// the key that it has made.
func revision(keys []*token) string {
	ids := make([]string, len(keys))
	for i, k := range keys {
		ids[i] = k.ID
	}
	slices.Sort(ids)
	sum := sha256.Sum256([]byte(strings.Join(ids, "\n")))
	return hex.EncodeToString(sum[:8])
}

func (v *visit) newKey() error {
	keys, err := v.tokens()
	if err != nil {
		return err
	}
	var own struct {
		Scopes  []string `json:"scopes"`
		AgentID string   `json:"agent_id"`
	}
	if err := v.get(under("credential"), &own); err != nil {
		return err
	}
	return v.show("newkey", "New key", "Keys", struct {
		Scopes            []string
		AgentID, Revision string
	}{own.Scopes, own.AgentID, revision(keys)})
}

func (v *visit) createKey() error {
	if err := v.form(); err != nil {
		return err
	}
	v.c.making.Lock()
	defer v.c.making.Unlock()
	keys, err := v.tokens()
	if err != nil {
		return err
	}
	if revision(keys) != v.r.PostForm.Get("revision") {
		return stale("The keys have changed since this form was shown, or it was sent before. No key was made: look " +
			"in the list of keys whether yours is there.")
	}
	if len(v.r.PostForm["scope"]) == 0 {
		return &problem{
			Status: http.StatusBadRequest, Code: "invalid_request",
			Detail: "No key was made: check at least one scope. An agent's key needs policy:evaluate.",
		}
	}
	in := map[string]any{"name": v.r.PostForm.Get("name"), "scopes": v.r.PostForm["scope"]}
	if agent := strings.TrimSpace(v.r.PostForm.Get("agent_id")); agent != "" {
		in["agent_id"] = agent
	}
	var made struct {
		Token string `json:"token"`
		ID    string `json:"id"`
	}
	if err := v.do(http.MethodPost, under("tokens"), in, &made); err != nil {
		return err
	}
	return v.answer(http.StatusCreated, "madekey", "The new key", "Keys", made)
}

func (v *visit) key() error {
	k, err := v.tokenOf(v.r.PathValue("id"))
	if err != nil {
		return err
	}
	var recent part[list[*row]]
	if err := recent.read(v, lastWith("credential", k.ID)); err != nil {
		return err
	}
	return v.show("key", "Key "+short(k.Name), "Keys", struct {
		It     *token
		Recent part[list[*row]]
	}{k, recent})
}

func (v *visit) tokenOf(id string) (*token, error) {
	keys, err := v.tokens()
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(keys, func(k *token) bool { return k.ID == id })
	if i < 0 {
		return nil, &problem{
			Status: http.StatusNotFound, Code: "not_found", Detail: "There is no such key, or it was revoked.",
		}
	}
	return keys[i], nil
}

func (v *visit) askRevoke() error {
	k, err := v.tokenOf(v.r.PathValue("id"))
	if err != nil {
		return err
	}
	return v.confirm("Keys", confirm{
		Question: "Revoke " + short(k.Name) + "?", Button: "Revoke", Stops: true,
		Text: "Whoever uses this key is refused on every replica, and so are the keys that it has made. " +
			"It cannot be taken back.",
		Action: pageOf("keys", k.ID, "revoke"), Back: pageOf("keys", k.ID),
	})
}

func (v *visit) revoke() error {
	if err := v.form(); err != nil {
		return err
	}
	err := v.do(http.MethodDelete, under("tokens", v.r.PathValue("id")), nil, nil)
	if err := v.unsure("the key is revoked on every replica", err); err != nil {
		return err
	}
	return v.to("/console/keys?revoked=" + url.QueryEscape(v.r.PathValue("id")))
}
