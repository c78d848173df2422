// Command move measures writ export and writ import: rows a second, and the peak
// of resident memory of each process (VmHWM), with as many rows as it is told.
//
//	go build -o bin/writ ./cmd/writ && go run ./bench/move -writ bin/writ -rows 100000,1000000
package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ed25519"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"writ/bench/history"
	"writ/ledger"
	"writ/ledger/receipt"
	"writ/storage"
	"writ/storage/embedded"
)

func main() {
	writ := flag.String("writ", "bin/writ", "binary to measure")
	sizes := flag.String("rows", "100000,1000000", "numbers of rows, separated by commas")
	dir := flag.String("dir", "", "directory to keep what is exported in: a first run fills it, a second measures")
	uri := flag.String("mongodb-uri", "", "replica set to import into, too, each time into a new database")
	flag.Parse()
	for size := range strings.SplitSeq(*sizes, ",") {
		rows, err := strconv.Atoi(size)
		if err == nil {
			err = measure(context.Background(), *writ, *dir, *uri, rows)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "move:", err)
			os.Exit(1)
		}
	}
}

// measure moves an organization with some rows.
func measure(ctx context.Context, writ, kept, uri string, rows int) (err error) {
	dir, err := os.MkdirTemp("", "writ-move-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	from, to, file := filepath.Join(cmp.Or(kept, dir), fmt.Sprint("from-", rows)), filepath.Join(dir, "to"), filepath.Join(dir, "org.ndjson")
	if _, err := os.Stat(from); errors.Is(err, fs.ErrNotExist) {
		if err := fill(ctx, from, rows); err != nil {
			return err
		}
		if kept != "" {
			return nil // and measured by the next run
		}
	}
	keys := filepath.Join(from, "keys.jwks")
	run := func(what string, args ...string) error {
		cmd := exec.CommandContext(ctx, writ, args...)
		cmd.Stderr = os.Stderr
		began := time.Now()
		if out, err := cmd.Output(); err != nil {
			return fmt.Errorf("%s: %w\n%s", what, err, out)
		}
		took := time.Since(began)
		usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
		if !ok {
			return fmt.Errorf("%s: the system tells no peak of memory", what)
		}
		fmt.Printf("%9d rows  %-18s %7.1f s  %7.0f rows/s  %4d µs CPU/row  peak %4d MiB\n", rows, what, took.Seconds(), float64(rows)/took.Seconds(),
			(cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime()).Microseconds()/int64(rows), usage.Maxrss>>10)
		return nil
	}
	if err := run("export", "export", "--org", "org", "--data", from, "-o", file); err != nil {
		return err
	}
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	fmt.Printf("%9d rows  file of %d MB\n", rows, info.Size()/1e6)
	if err := run("import", "import", file, "--keys", keys, "--data", to); err != nil {
		return err
	}
	if err := run("import again", "import", file, "--keys", keys, "--data", to); err != nil {
		return err
	}
	if err := run("verify --chain", "verify", "--chain", "--data", to); err != nil || uri == "" {
		return err
	}
	mongo := []string{"--store", "mongodb", "--mongodb-uri", uri, "--mongodb-database", fmt.Sprint("move", time.Now().UnixNano())}
	if err := run("import to MongoDB", append([]string{"import", file, "--keys", keys, "--data", to}, mongo...)...); err != nil {
		return err
	}
	return run("export of MongoDB", append([]string{"export", "--org", "org", "-o", file + ".again"}, mongo...)...)
}

// batch is how many decisions are under a head.
const batch = 16

// fill makes a data directory with an organization that has decided some intents, one in
// a hundred of them settled.
func fill(ctx context.Context, dir string, rows int) error {
	signer := receipt.NewSigner(ed25519.NewKeyFromSeed(bytes.Repeat([]byte{1}, ed25519.SeedSize)))
	keys, err := receipt.NewKeys(signer.Public())
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "keys.jwks"), keys.JWKS(), 0o600); err != nil {
		return err
	}
	s, err := embedded.Open(filepath.Join(dir, "store"), embedded.Options{WriteBehind: 1024})
	if err != nil {
		return err
	}
	l, err := ledger.Open(ctx, ledger.Config{Store: s, Signer: signer, Scrub: history.Plain{}})
	if err != nil {
		return err
	}
	for n := 0; n < rows; n += batch {
		if err := decide(ctx, l, n); err != nil {
			return err
		}
	}
	if err := l.Close(ctx); err != nil {
		return err
	}
	return s.Close()
}

func decide(ctx context.Context, l *ledger.Ledger, n int) error {
	outs, err := history.Decide(ctx, l, "org", n, batch)
	if err == nil && n/batch%6 == 0 {
		_, _, err = l.Settle(ctx, "org", outs[0].Record.DecisionID, storage.Settlement{Outcome: storage.Executed, RecordedAt: outs[0].Record.DecidedAt})
	}
	return err
}
