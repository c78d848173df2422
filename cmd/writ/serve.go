package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"writ.example/writ/decision/approval"
	"writ.example/writ/storage/datadir"
	"writ.example/writ/storage/ledger"
)

type serveCmd struct {
	Addr           string      `default:":3820" help:"Address of the API."`
	AdminAddr      string      `default:"127.0.0.1:3821" help:"Address of /livez, /readyz, /metrics and what writ doctor, backup and debug bundle ask; keep it private."`
	Data           datadir.Dir `default:"./data" help:"Data directory."`
	BackupDir      string      `placeholder:"DIR" help:"Directory of the backups that writ backup asks for. Without it, or with --store mongodb, there are none."`
	BackupKeys     bool        `help:"Put signing key, operator secret and scrub key into backups, too."`
	AcceptRollback *uint64     `placeholder:"SEQ" help:"Open a store that has lost something and ends at head SEQ, as the refused start said. Give it for one start."`

	Config configFlag `placeholder:"FILE" help:"YAML file of settings by the names of these flags, such as addr: 127.0.0.1:3820. A flag goes before a variable, and a variable before the file."`

	TLS tlsFlags `embed:""`

	Demo bool `help:"Decide the example intents first, in the organization demo, then serve."`

	Plans      string        `placeholder:"FILE" help:"JSON object of the plans by name, replacing the built-in ones."`
	ReceiptTTL time.Duration `name:"receipt-ttl" env:"WRIT_RECEIPT_TTL,RECEIPT_TTL" default:"300s" help:"How long a receipt can be acted upon."`

	RetentionGrace time.Duration `default:"168h" help:"How long after a change of plan the history is kept as long as the plan before kept it."`

	RequireRegisteredAgents bool `env:"WRIT_REQUIRE_REGISTERED_AGENTS,REQUIRE_REGISTERED_AGENTS" help:"Deny intents of agents that the organization has not registered."`

	IntentAge time.Duration `default:"0s" help:"Refuse an intent that was not decided before and whose issued_at is further from now, such as 24h; and what is older than twice that in any case. 0s is any issued_at."`

	ApprovalTTL    time.Duration   `name:"approval-ttl" env:"WRIT_APPROVAL_TTL,APPROVAL_TTL" default:"1h" help:"How long a held decision can be approved or rejected, and how long an approval holds that does not say it."`
	ApprovalDetail approval.Detail `env:"WRIT_APPROVAL_DETAIL,APPROVAL_DETAIL" default:"scrubbed" enum:"scrubbed,keys" help:"What is kept of the metadata of a held intent for its approver, until the approval has ended: scrubbed keeps the values, scrubbed of secrets, keys the keys alone."`

	Audit ledger.Mode `env:"WRIT_AUDIT,AUDIT_MODE" default:"minimal" enum:"minimal,full" help:"How much of an intent the history keeps: minimal keeps the keys of its metadata, full the values too. Either mode scrubs secrets."`

	AuditAck ackMode `env:"WRIT_AUDIT_ACK,AUDIT_ACK" default:"durable" enum:"durable,queued" help:"When a decision is answered: durable once it is on the disk, queued before that, so that a crash loses the last ones that were answered."`

	keyFiles `embed:""`

	APIURL       string `name:"api-url" aliases:"public-url" placeholder:"URL" help:"Base URL of the API as clients reach it, for GET /v1/hosted/config and, with https, GET /.well-known/authzen-configuration. Also --public-url. Default: http://localhost and the port of addr."`
	PortalURL    string `name:"portal-url" placeholder:"URL" help:"Base URL of the portal, for GET /v1/hosted/config and where billing returns to. Default: api-url."`
	ServiceToken string `name:"service-token" env:"WRIT_SERVICE_TOKEN,SERVICE_TOKEN" placeholder:"TOKEN" help:"Bearer of GET /v1/ops/usage, which refuses everyone without it. Prefer the variable: a flag shows in the list of processes."`

	storeFlags        `embed:""`
	Billing           billingFlags `embed:""`
	CallerLimits      limitFlags   `embed:""`
	Webhooks          webhookFlags `embed:""`
	DecisionLog       sinkTarget   `placeholder:"SINK" help:"Where every row of the history is also sent, as JSON lines: stdout, file:PATH, otlp:URL of an OpenTelemetry collector, or kafka:BROKERS/TOPIC."`
	DecisionLogFormat string       `default:"writ" enum:"writ,opa" help:"Form of the lines of --decision-log: writ is a row as the API shows it, opa an event of OPA's decision log."`
	Kafka             kafkaFlags   `embed:"" prefix:"kafka-"`
	Core              coreFlags    `embed:""`
	ExtAuthz          envoyFlags   `embed:""`

	Traces string `placeholder:"URL" help:"OpenTelemetry collector to which the spans of requests are sent, such as http://localhost:4318/v1/traces. Without it there are none."`

	OperatorAlg  string `name:"operator-alg" default:"HS256" enum:"HS256,RS256,ES256,EdDSA" help:"The one algorithm that operator tokens are signed with: HS256 (by operator-secret in the data directory), RS256, ES256 or EdDSA."`
	OperatorJWKS string `name:"operator-jwks" placeholder:"FILE|URL" help:"JSON Web Key Set that verifies operator tokens of RS256, ES256 or EdDSA."`

	CacheMB      int64         `name:"cache-mb" default:"256" help:"MiB of compiled policies and rules to keep."`
	DrainTimeout time.Duration `default:"15s" help:"How long a stopping server finishes what it accepted."`

	VerifyEngine oneIn `placeholder:"1/N" help:"Have every Nth decision made again by the policy's Rego, in the background, and differences counted and logged."`

	LogFormat string     `default:"text" enum:"text,json" help:"Form of the log's lines: text is key=value, json an object a line."`
	LogLevel  slog.Level `default:"info" help:"The least level that is logged: debug, info, warn or error."`

	QueueDeadline time.Duration `default:"250ms" help:"How long a decision waits for a processor when there is more to decide than the server can bear; work on documents waits eight times as long. The rest is refused with 503."`
}

// queuedCommits is how many batches may be answered before they are durable under --audit-ack
// queued. More would save little. A crash loses at most this many batches.
const queuedCommits = 16

// queuedRest is the least pause after a commit of several callers under --audit-ack queued. A commit that does not
// wait for the disk takes a twentieth of it. With half of it the rate was lower: see bench/results/queued.txt.
const queuedRest = time.Millisecond

func (c *serveCmd) Help() string {
	return `The first start in an empty data directory makes a signing key, an operator secret
and a scrub key, and prints curl commands that register an example policy and
evaluate an intent. Stop with SIGINT or SIGTERM: the server
finishes the requests it has accepted. SIGHUP, or POST /reload on the
admin address, reads the settings, the plans and the certificates again.`
}

// serves refuses a system on which the stores are not tested.
func serves(system string) error {
	if system != "linux" {
		return fmt.Errorf("serve: the store is not tested on %s: run writ serve on linux, such as in a container; "+
			"the verbs that call a server work here", system)
	}
	return nil
}

// Run serves until ctx ends.
func (c *serveCmd) Run(
	ctx context.Context, s streams, strange unread, prepare prepareQuery, k *kong.Context, again again,
) error {
	if err := serves(runtime.GOOS); err != nil {
		return err
	}
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	defer tuneGarbage()()
	greetings := s.out
	if c.DecisionLog.kind == stdoutSink {
		greetings = s.err // standard output has rows alone
	}
	n, err := openNode(ctx, c, s, prepare)
	if err != nil {
		return err
	}
	if len(strange) > 0 {
		n.log.Warn("variables that begin with "+envPrefix+" and set nothing: writ serve --help names those that do",
			"variables", []string(strange))
	}
	n.reloader = newReloader(n, k.Selected(), again)
	stopped := make(chan error, 1)
	go func() { stopped <- n.serve() }()
	if err := n.serveEnvoy(ctx, c); err != nil {
		return errors.Join(err, n.shutdown(), <-stopped)
	}
	if err := n.greet(ctx, c, greetings); err != nil {
		return errors.Join(err, n.shutdown(), <-stopped)
	}
	giveBack() // what only a start needs
	for serving := true; serving; {
		select {
		case err := <-stopped:
			return errors.Join(err, n.shutdown())
		case err := <-n.lost:
			n.log.Error("stopping: nothing can be decided any more", "problem", err)
			return errors.Join(err, n.shutdown(), <-stopped)
		case <-hangups:
			_, _ = n.reload() // it is in the log
		case <-ctx.Done():
			serving = false
		}
	}
	n.log.Info("stopping: finishing what was accepted", "timeout", c.DrainTimeout)
	return errors.Join(n.shutdown(), <-stopped)
}
