package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"writ.example/writ/authoring/workspace"
	"writ.example/writ/internal/apikey"
)

const keysPath = "/v1/tokens"

// Keys returns all API keys that are not revoked.
func Keys(ctx context.Context, call workspace.Call) ([]jsontext.Value, error) {
	return all(ctx, call, keysPath)
}

// PrintKeys prints API keys as a table.
func PrintKeys(w io.Writer, items []jsontext.Value) error {
	return table(w, []string{"KEY", "NAME", "BOUND TO", "MADE", "EXPIRES", "SCOPES"}, items, func(k key) []string {
		return []string{k.ID, k.Name, k.AgentID, Time(k.CreatedAt), Time(k.ExpiresAt), strings.Join(k.Scopes, " ")}
	})
}

// key is an API key as a server shows it.
type key struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	Scopes    []string  `json:"scopes"`
	AgentID   string    `json:"agent_id"`
	CreatedAt time.Time `json:"createdAt"`
	ExpiresAt time.Time `json:"expiresAt"`
}

// NewKey is an API key to make.
type NewKey struct {
	Name      string    `json:"name"`
	Scopes    []string  `json:"scopes,omitempty"`
	AgentID   string    `json:"agent_id,omitzero"`
	PolicyID  string    `json:"policy_id,omitzero"`
	ExpiresAt time.Time `json:"expiresAt,omitzero"`
}

// CreateKey makes an API key and returns its secret, which is in no other answer, and its id.
func CreateKey(ctx context.Context, call workspace.Call, k NewKey) (secret, id string, err error) {
	doc, err := send(ctx, call, http.MethodPost, keysPath, k)
	if err != nil {
		return "", "", err
	}
	var made struct {
		Token string `json:"token"`
		ID    string `json:"id"`
	}
	if err = decode(doc, &made); err == nil && made.Token == "" {
		err = errors.New("the server answers without the key")
	}
	if err != nil {
		return "", "", err
	}
	return made.Token, made.ID, nil
}

// KeyID returns the id of an API key. A text that is not a key is an id
// already.
func KeyID(key string) string {
	if id, err := apikey.Parse([]byte(key)); err == nil {
		return string(id[:])
	}
	return key
}

// RevokeKey revokes an API key, and the keys that were made with it.
func RevokeKey(ctx context.Context, call workspace.Call, id string) error {
	path := keysPath + "/" + url.PathEscape(id)
	_, err := call(ctx, workspace.Request{Method: http.MethodDelete, Path: path, Want: http.StatusNoContent}, nil)
	if answered(err, http.StatusNotFound) {
		return fmt.Errorf("there is no key with the id %s: writ api-key list has the ids", id)
	}
	return err //nolint:wrapcheck // the server's own words
}
