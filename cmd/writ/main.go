// Command writ decides whether an action of an automated agent may proceed, before the action
// happens. The same binary serves the API and has verbs for operators and authors. Each verb
// has a file of its own and explains itself with --help.
//
// writ exits with 0 on success, 1 if something failed, 2 on a usage error and 3 on invalid
// input. writ diff exits with 2 also if it could not tell, because 1 means a difference. writ decide
// exits by the decision.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"writ.example/writ/internal/tlsfiles"
)

// The exit codes.
const (
	exitOK = iota
	exitFailed
	exitUsage
	exitInvalid

	// exitUntold is the code of a comparison without a result. diff and cmp have the same.
	exitUntold = 2
)

// cli is the command line. A flag can also be set as a WRIT_… variable, unless it answers a question
// for the user: a variable that was set once would answer it every time.
type cli struct {
	Serve            serveCmd            `cmd:"" help:"Serve the API until interrupted."`
	Demo             demoCmd             `cmd:"" help:"Decide the example intents over HTTP, verify each receipt offline, and exit."`
	Eval             evalCmd             `cmd:"" help:"Evaluate an intent offline with the engine that the service runs."`
	Check            checkCmd            `cmd:"" help:"Validate files of policies, rules, intents and suites, and warn of what they may not mean."`
	Config           configCmd           `cmd:"" help:"Check files of the server's settings."`
	Schema           schemaCmd           `cmd:"" help:"Print the JSON Schema of policies, rules, intents or suites."`
	Test             testCmd             `cmd:"" help:"Run suites of tests of policies and rules."`
	SuiteFromHistory suiteFromHistoryCmd `cmd:"" help:"Print suites of an organization's last decisions."`

	Fmt    fmtCmd    `cmd:"" help:"Write policy, rule and intent files in canonical form, keeping comments."`
	Pull   pullCmd   `cmd:"" help:"Write an organization's policies and rules from a server into files."`
	Diff   diffCmd   `cmd:"" help:"Show how policies and rules in files differ from a server's."`
	Push   pushCmd   `cmd:"" help:"Bring policies and rules from files to a server, after showing the plan."`
	Rego   regoCmd   `cmd:"" help:"Print the Rego module of a policy."`
	Verify verifyCmd `cmd:"" help:"Verify receipts offline."`

	Login   loginCmd   `cmd:"" help:"Store a credential for the verbs that work with a server."`
	Logout  logoutCmd  `cmd:"" help:"Remove a stored credential."`
	Status  statusCmd  `cmd:"" help:"Show whom the verbs act as, and what the organization's agents are doing."`
	Decide  decideCmd  `cmd:"" help:"Have the server decide an intent, and exit by the decision."`
	History historyCmd `cmd:"" help:"Show what was decided, and why."`

	Approvals approvalsCmd `cmd:"" help:"Show what waits for an approval, and decide."`
	Agent     agentCmd     `cmd:"" help:"Stop agents, and let them go on."`
	Stop      stopCmd      `cmd:"" help:"Stop everything: all that the organization's agents ask is denied."`
	Resume    stopCmd      `cmd:"" help:"End the stop of everything."`
	APIKey    apiKeyCmd    `cmd:"" name:"api-key" help:"Make and revoke API keys."`
	Usage     usageCmd     `cmd:"" help:"Show what the organization has used of its plan."`
	Console   consoleCmd   `cmd:"" help:"Serve the console of a server on this host."`

	Export  exportCmd  `cmd:"" help:"Write an organization to a file: documents, history, public keys."`
	Import  importCmd  `cmd:"" help:"Take an organization in from a file of writ export, verifying each row."`
	Backup  backupCmd  `cmd:"" help:"Have a running server copy its store into a directory."`
	Restore restoreCmd `cmd:"" help:"Put a backup into an empty data directory, verifying each file."`
	Doctor  doctorCmd  `cmd:"" help:"Examine a server, or what a stopped one has left, and say what to do."`
	Debug   debugCmd   `cmd:"" help:"Collect what helps to understand a server, without secrets."`
	Token   tokenCmd   `cmd:"" help:"Mint credentials for development."`
	Keys    keysCmd    `cmd:"" help:"Generate and show signing keys."`
	Hook    hookCmd    `cmd:"" help:"Decide the calls of an agent's tools as the hook of Claude Code, Codex, Gemini CLI or Cursor."`
	MCP     mcpCmd     `cmd:"" name:"mcp" help:"Decide what an agent asks an MCP server for, as a gateway between both."`
	Bench   benchCmd   `cmd:"" help:"Measure a server, beside a floor, OPA, Cerbos or another writ."`

	Completion completionCmd `cmd:"" help:"Print the completions for bash, zsh or fish."`
	Complete   completeCmd   `cmd:"" hidden:""`
	Man        manCmd        `cmd:"" help:"Write the manual's pages into a directory."`
	Version    versionCmd    `cmd:"" help:"Print the version, the revision it was built from and the version of Go."`

	ShowVersion kong.VersionFlag `name:"version" env:"-" help:"Print what the verb version prints, and exit."`
}

func main() { mainWith() }

// mainWith does the work of main, with more options for kong.
func mainWith(options ...kong.Option) {
	// A Rego condition can name the zone "Local". A decision must not depend on the zone of the
	// machine that makes it.
	time.Local = time.UTC
	// The end of a terminal does not end a verb. serve logs the signal.
	signal.Ignore(syscall.SIGHUP)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	code := run(ctx, os.Args[1:], streams{in: os.Stdin, out: os.Stdout, err: os.Stderr}, options...)
	stop()
	os.Exit(code)
}

// exited is the exit code when kong wants to end the process, such as after --help.
type exited int

// run executes the command line and returns the exit code. options come after run's own
// options.
func run(ctx context.Context, args []string, s streams, options ...kong.Option) (code int) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case exited:
			if code = int(r); code == exitOK && asksHook(args, s.in) {
				fmt.Fprintln(s.err, "writ could not decide: --help and --version decide nothing")
				code = exitUsage
			}
		default:
			panic(r)
		}
	}()
	model := func(c any) (*kong.Kong, error) {
		return kong.New(c, append([]kong.Option{
			kong.Name("writ"),
			kong.Description(
				"writ decides, before it happens, whether an automated agent's action may proceed.\n\nA flag can " +
					"also be set as a variable, --data as WRIT_DATA, unless its help names none.",
			),
			kong.DefaultEnvars(strings.TrimSuffix(envPrefix, "_")),
			kong.Vars{"version": readBuilt().String()},
			kong.Writers(s.out, s.err),
			kong.Exit(func(code int) { panic(exited(code)) }),
			kong.BindTo(ctx, (*context.Context)(nil)),
			kong.Bind(s),
			kong.Bind(prepareQuery(nil)),
		}, options...)...)
	}
	// Nearly all that parsing makes is kept, so a collection meanwhile would find little garbage.
	percent := debug.SetGCPercent(400)
	if k := verbAlone(model, args); k != nil {
		debug.SetGCPercent(percent)
		return exitCode(s.err, advised(k, k.Run(unread(nil))))
	}
	parser, err := model(new(cli))
	if err != nil {
		fmt.Fprintf(s.err, "writ: %v\n", err)
		return exitFailed
	}
	k, err := parser.Parse(helpLast(args))
	if err != nil {
		fmt.Fprintf(s.err, "writ: %v\n%s\n", err, whereHelpIs(err))
		return exitUsage
	}
	unread, err := unreadVariables(os.Environ(), k)
	if err != nil {
		return exitCode(s.err, err)
	}
	debug.SetGCPercent(percent)
	err = k.Run(unread, again(func() (*serveCmd, *kong.Node, error) {
		c := new(cli)
		parser, err := model(c)
		if err != nil {
			return nil, nil, err
		}
		k, err := parser.Parse(helpLast(args))
		if err != nil {
			return nil, nil, err //nolint:wrapcheck // it names the flag
		}
		return &c.Serve, k.Selected(), nil
	}))
	return exitCode(s.err, advised(k, err))
}

// advised adds to the error of a verb with --ca what [tlsfiles.Advise] does.
func advised(k *kong.Context, err error) error {
	if slices.ContainsFunc(k.Flags(), func(f *kong.Flag) bool { return f.Name == "ca" }) {
		return tlsfiles.Advise(err)
	}
	return err
}

// verbAlone parses a command line by a model of its verb alone. A model of all verbs takes longer than all
// else that a short verb does, such as a hook before each call of an agent's tool. verbAlone returns nil for a command
// line that needs the other verbs: for help, to name a mistake, or the variables of another verb.
func verbAlone(model func(any) (*kong.Kong, error), args []string) *kong.Context {
	if len(args) == 0 || slices.Contains(wholeModel, args[0]) ||
		slices.ContainsFunc(args, func(a string) bool { return a == "-h" || a == "--help" }) {
		return nil
	}
	verb, ok := reflect.TypeFor[cli]().FieldByNameFunc(func(field string) bool {
		return strings.EqualFold(field, strings.ReplaceAll(args[0], "-", ""))
	})
	if !ok {
		return nil
	}
	parser, err := model(reflect.New(reflect.StructOf([]reflect.StructField{verb})).Interface())
	if err != nil {
		return nil
	}
	k, err := parser.Parse(args)
	if err != nil {
		return nil
	}
	if strange, err := unreadVariables(os.Environ(), k); err != nil || len(strange) > 0 {
		return nil
	}
	return k
}

// wholeModel are the verbs that describe all verbs, and serve, which reads its settings while it is parsed.
var wholeModel = []string{"complete", "man", "serve"}

// These errors mean that the verb has already told the user what failed.
var (
	errReported        = errors.New("failed")
	errReportedInvalid = errors.New("invalid input")
)
