package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"writ.example/writ/authoring/workspace"
	"writ.example/writ/bench/corpus"
	"writ.example/writ/bench/load"
	"writ.example/writ/engine"
)

// attack describes how one organization attacks all others.
type attack struct {
	name string
	// policy changes the reference policy, and intent changes the allowed intent. Either may be
	// nil. rules are the conditions of the attacker's rules, as JSON documents.
	policy func(*engine.ActionPolicy)
	intent func(*engine.Intent)
	rules  []string
	// refused says that the service may refuse the rules when they are created. That ends the
	// attack.
	refused bool
	// history says that the attack needs a history to search.
	history bool
	// path and body describe the requests of the attack. If body is nil, a request is a GET. If
	// path is empty, the requests are evaluations of the intent, each with a new id.
	path string
	body func(*attack) any
	// ids is how many ids replace the id of the policy, in turn. If ids is 0, the policy keeps
	// its own id.
	ids int
	// batch is how many intents an evaluation has; 0: one, without a batch. manner is how the attack misuses streams of
	// intents, with window intents on their way. Both are for attacks without a path.
	batch, window int
	manner        load.Manner

	org string
	in  *engine.Intent
}

// attacker is the process of an attack. After its preparations it writes a line. It attacks
// once it has read a line, and then writes the counts of the answers.
type attacker struct {
	in  io.Writer
	out *bufio.Reader
	cmd *exec.Cmd
}

// errRefused means that the attack's rules were refused when they were created.
var errRefused = errors.New("refused when it is created")

// spawn starts the process of an attack and waits until it is ready.
func (h *Hostile) spawn(ctx context.Context, name string) (*attacker, error) {
	//nolint:gosec // this binary
	cmd := exec.CommandContext(ctx, "nice", "-n", attackerNice, h.Binary, "bench", "hostile", "--attack", name,
		"--url", "http://"+h.victim.target.URL.Host, "--secret", filepath.Join(h.victim.data, "operator-secret"),
		"--conns", strconv.Itoa(h.Conns), "--history", strconv.Itoa(h.History), "--duration", h.Duration.String())
	cmd.Stderr = os.Stderr
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	a := &attacker{in: in, out: bufio.NewReader(out), cmd: cmd}
	switch line, err := a.out.ReadString('\n'); {
	case err != nil:
		return nil, errors.Join(fmt.Errorf("the attacker did not get ready: %w", err), cmd.Wait())
	case line != "ready\n":
		return nil, errors.Join(fmt.Errorf("%w: %s", errRefused, line), cmd.Wait())
	}
	return a, nil
}

// Attack runs in the process of an attack. It attacks the server at base.
func (h *Hostile) Attack(
	ctx context.Context, name string, base *url.URL, bearer Bearer, in io.Reader, out io.Writer,
) error {
	for _, a := range attacks() {
		if a.name == name {
			return h.attack(ctx, a, base, bearer, in, out)
		}
	}
	return fmt.Errorf("there is no attack %q", name)
}

func (h *Hostile) attack(
	ctx context.Context, a *attack, base *url.URL, bearer Bearer, in io.Reader, out io.Writer,
) error {
	t, err := h.prepare(ctx, a, base, bearer)
	if refused := (*workspace.AnswerError)(nil); a.refused && errors.As(err, &refused) &&
		refused.Status == http.StatusBadRequest {
		_, err = fmt.Fprintln(out, err)
		return err
	}
	if err != nil {
		return fmt.Errorf("preparing %s: %w", a.name, err)
	}
	fmt.Fprintln(out, "ready")
	if _, err := bufio.NewReader(in).ReadString('\n'); err != nil {
		return fmt.Errorf("waiting to start: %w", err)
	}
	r, err := load.Drive(ctx, t, load.Options{Conns: h.Conns, Duration: h.Duration, Hostile: true})
	if err != nil {
		return err
	}
	got := answered{Statuses: maps.Clone(r.Others), Refusals: r.Refusals, Dropped: r.Dropped}
	for status, n := range map[int]int{http.StatusOK: r.Accepted, http.StatusServiceUnavailable: r.Refused} {
		if n > 0 {
			got.Statuses[status] = n
		}
	}
	return json.MarshalWrite(out, got)
}

// prepare registers the policy, rules and keys of a, and returns its requests.
func (h *Hostile) prepare(ctx context.Context, a *attack, base *url.URL, bearer Bearer) (*load.Target, error) {
	a.org = fmt.Sprintf("hostile-%s-%d", a.name, os.Getpid()) // changes are limited
	token, err := bearer(a.org)
	if err != nil {
		return nil, err
	}
	c := clientAt(base, token)
	p := corpus.ReferencePolicy()
	p.OrganizationID = a.org
	if a.policy != nil {
		a.policy(p)
	}
	if err := c.Do(ctx, http.MethodPost, "/v1/policies/register", map[string]any{"policy": p}, nil); err != nil {
		return nil, err
	}
	for i, condition := range a.rules {
		body := rule(fmt.Sprintf("rule %d", i), condition, `{"decision":"deny","reason":"hostile"}`)
		if err := c.Do(ctx, http.MethodPost, "/v1/rules", body, nil); err != nil {
			return nil, err
		}
	}
	callers := make([]load.Caller, h.Conns)
	for i := range callers {
		callers[i].PolicyID = p.PolicyID
		callers[i].Key, err = mint(ctx, c, "policy:evaluate", "policy:read", "policy:write", "rules:read",
			"rules:write", "history:read")
		if err != nil {
			return nil, err
		}
	}
	if a.history {
		if err := (Work{History: h.History}).fill(ctx, base, callers); err != nil {
			return nil, err
		}
	}
	a.in = corpus.AllowedIntent()
	if a.intent != nil {
		a.intent(a.in)
	}
	return a.target(base, callers)
}

// target returns the target to which a sends its requests.
func (a *attack) target(base *url.URL, callers []load.Caller) (*load.Target, error) {
	a.in.IntentID, a.in.PolicyID = load.IntentID, load.PolicyID
	t, err := Work{Mix: []Intent{{Weight: 1, Intent: a.in}}, Batch: a.batch, Stream: a.window}.ask(base, callers)
	if err != nil {
		return nil, err
	}
	t.Manner = a.manner
	t.Decides = false // no body of an answer is kept
	if a.path == "" {
		return t, nil
	}
	if t.URL, err = base.Parse(a.path); err != nil {
		return nil, err
	}
	t.Messages = nil
	if a.body != nil {
		t.Body, err = json.Marshal(a.body(a), json.Deterministic(true))
	}
	if a.ids > 0 {
		for i := range callers {
			callers[i].PolicyID = uuid.NewSHA1(uuid.NameSpaceOID, fmt.Append(nil, a.org, i%a.ids)).String()
		}
	}
	return t, err
}

func rule(name, condition, action string) any {
	return map[string]any{"name": name, "condition": condition, "action": action}
}
