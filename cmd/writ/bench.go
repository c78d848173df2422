package main

import (
	"errors"
	"time"

	"writ.example/writ/bench"
	"writ.example/writ/storage/datadir"
)

type benchCmd struct {
	Run     benchRunCmd     `cmd:"" default:"withargs" help:"Measure a server beside others, in rounds."`
	Compare benchCompareCmd `cmd:"" help:"Compare the raw data of two measurements, and fail on a regression."`
	Report  benchReportCmd  `cmd:"" help:"Write the HTML report of raw data again."`
	Guard   benchGuardCmd   `cmd:"" help:"Compare the processor time a request of two binaries, and fail on a loss."`
	Hostile benchHostileCmd `cmd:"" help:"Measure what one organization's worst costs another."`
	Move    benchMoveCmd    `cmd:"" help:"Measure writ export and writ import."`
	Growth  benchGrowthCmd  `cmd:"" help:"Measure what one more organization costs, up to 100,000."`
	Floor   benchFloorCmd   `cmd:"" hidden:"" help:"Serve a constant, as --peer floor."`
}

func (c *benchCmd) Help() string {
	return `writ bench is writ bench run: see writ bench run --help.`
}

// benchWork are the flags for the work that servers are given.
type benchWork struct {
	Org      string `default:"bench" help:"Organization, which a credential must be of. Several are bench-0, bench-1 and so on."`
	Orgs     int    `default:"1" help:"Organizations; each request is of a random one. More than one needs --data or no URL."`
	Policy   string `placeholder:"FILE" help:"Policy of yours, in place of the reference policy. Needs --intents."`
	Intents  string `placeholder:"FILE" help:"Intents of yours, one a line of JSON. Without --policy the server at URL has their policies."`
	Policies int    `default:"1" help:"Policies of each organization, no two alike."`
	Rules    string `default:"0" placeholder:"N|FILE" help:"Rules of each organization: a number of generated ones, or a file of yours."`
	Rego     int    `help:"Rules of each organization whose condition is Rego, which cost more to decide."`
	History  int    `placeholder:"N" help:"Decisions to store before anything is measured."`
	Send     string `default:"single" placeholder:"HOW" help:"How intents are sent: single, one a request; batch=N, N a request; stream=N, N on their way on each stream; approvals, each held, approved and sent again."`
	Deny     bool   `help:"Add a rule to each organization that denies every intent."`
	Conns    int    `default:"64" help:"Connections of closed loops."`
}

type benchRunCmd struct {
	URL  string   `arg:"" optional:"" help:"Server to measure, such as https://writ.example.com. Default: this binary serves, in a temporary directory."`
	Self bool     `help:"Measure this binary, as without URL."`
	Peer []string `sep:"none" placeholder:"NAME" help:"Measure this beside it: floor, opa (three forms), cerbos (without and with its audit log), or the path of another writ's binary. It can be repeated."`

	Vary []string `sep:"none" placeholder:"WHAT=N" help:"Measure the server beside itself with other work: orgs, policies, rules, rego or history, such as orgs=1000; with another --send; or with another flag of writ serve, such as --vary=--audit-ack=queued. It can be repeated."`

	APIKey string      `placeholder:"KEY" help:"Credential at URL, which may register policies and rules. Better set as WRIT_API_KEY."`
	Data   datadir.Dir `placeholder:"DIR" help:"Data directory of the server at URL, in place of a credential: its operator-secret."`
	PID    int         `name:"pid" placeholder:"PID" help:"Process of the server at URL, for its processor time."`
	Admin  string      `placeholder:"URL" help:"Admin address of the server at URL, for its processor time from /metrics."`

	Header     []string `sep:"none" placeholder:"NAME: VALUE" help:"Header of each request to URL. It can be repeated. It is not in the raw data."`
	trustFlags `embed:""`
	benchWork  `embed:""`

	Serve     []string      `sep:"none" placeholder:"FLAG" help:"Flag of writ serve for each writ that is started, such as --serve=--audit-ack=queued. It can be repeated."`
	Load      []string      `aliases:"stages" default:"closed,50%" placeholder:"LOAD,..." help:"Loads of a round: closed, a share of its rate such as 50%, intents a second such as 2000, or stages such as 30s:100,1m:1000, each of which goes from the last rate to its own. Also as --stages."`
	OpenConns int           `default:"256" placeholder:"N" help:"Connections of open loops."`
	Patience  time.Duration `default:"10s" help:"How long an arrival of an open loop waits for a free connection."`
	Rounds    int           `default:"5" help:"Rounds that count."`
	Duration  time.Duration `default:"5s" help:"How long each load of a round is measured."`
	Warmup    time.Duration `default:"1s" help:"How long a server is warmed up before each."`
	MaxOther  float64       `default:"0.1" placeholder:"N" help:"Processors that others may use while a round is measured; 0 for any number."`
	Pin       string        `default:"auto" placeholder:"SERVER:DRIVER" help:"Processors of the servers that are started and of the driver, such as 0:1 or 0-1:2,3; auto is 0:1 where there are two, off is none."`
	Out       string        `placeholder:"NAME" help:"Write NAME.jsonl (raw data), NAME.html (a report), NAME.json (the summary), and with --fail-if NAME.xml (JUnit). Default: writ-bench- and the time."`

	FailIf []bench.Threshold `sep:"none" placeholder:"FIGURE>LIMIT" help:"Exit with 99 if the first server exceeds this, such as p99>10ms, or stays below it, such as rate<5000. It can be repeated."`
}

func (c *benchRunCmd) Help() string {
	return `Measures how many intents a server decides, how long each waits, and how much of a
processor it takes. What is sent are intents that the policy allows, each with a random
id; a server that denies one, or answers with anything but 200 or 503, ends the run.

With --policy, --rules and --intents it sends yours. A line of --intents is an object:

  {"weight": 3, "want": "deny", "intent": {"agent_id": "ci", "action_type": "deploy.app",
   "resource": "k8s/prod/app", "metadata": {"ticket": "T-{{number}}"}}}

weight says how often it is drawn. A decision that is not want is counted and printed. In
texts {{uuid}} is a random id, {{number}} a number that grows, and {{now}} the time. What is
left out of intent_id, issued_at and policy_id is {{uuid}}, {{now}} and that of --policy.

In each round every server is asked in turn: by a closed loop, in which each connection
sends its next request when the last is answered, and at half of that rate by an open
loop, whose requests arrive on a schedule whatever the answers are. Latencies count from
the schedule. The first server is asked once more: how much the two differ is the noise
(A/A). A round during which others used the machine is dropped and made again, three
times as many at most.

--fail-if judges p50, p90, p99, p99.9 and max (from the schedule), processor (of an intent),
rate, refused (503), unsent and mismatched (a second) of the first server under each load,
and in open loops p99/floor, the p99 divided by that of --peer floor, but the rate not where
the load is a share. The exit code is 99 if one is exceeded, and 3 if others used
the machine in every round, so that nothing can be said.

A server at URL keeps what it is given: policies 7b0c2f6e-…, rules, a key a run, and the
decisions, which are metered. Use an organization of its own.

  writ bench --peer floor --peer opa --peer cerbos
  writ bench --policy payments.yaml --rules rules.yaml --intents intents.jsonl
  writ bench --vary orgs=1000 --vary history=1000000
  WRIT_API_KEY=... writ bench http://localhost:3820 --admin http://localhost:3821
  writ bench --load closed,70%,100%,200%,300% --open-conns 1024 --patience 100ms
  writ bench https://writ.example.com --ca ca.pem --stages 30s:100,1m:1000,30s:1000,30s:0
  writ bench --load 1000 --rules 50 --fail-if 'p99>10ms' --fail-if 'refused>0'

Peers are found in PATH, or fetched at a known version: OPA by go install, Cerbos by npm.
One that cannot be had is skipped, which the report says.`
}

func (c *benchRunCmd) Validate() error {
	switch {
	case c.Rounds < 1 || c.Duration <= 0 || c.Warmup < 0 || c.OpenConns < 1 || c.Patience <= 0 || c.MaxOther < 0:
		return errors.New(
			"--rounds, --open-conns: want at least 1; --duration, --patience: more than 0; --warmup, --max-other: " +
				"at least 0",
		)
	case c.URL != "" && c.Self:
		return errors.New("--self: this binary serves where there is no URL")
	case c.URL == "" && (c.APIKey != "" || c.Data != "" || c.PID != 0 || c.Admin != "" || len(c.Header) > 0):
		return errors.New("--api-key, --data, --pid, --admin, --header: are about a server at URL")
	case c.URL == "" && c.Intents != "" && c.Policy == "":
		return errors.New("--intents: needs --policy FILE, or the URL of a server that has their policies")
	case c.URL != "" && len(c.Serve)+len(c.Vary) > 0:
		return errors.New("--serve, --vary: are about the server that is started without URL")
	}
	return c.benchWork.Validate()
}
