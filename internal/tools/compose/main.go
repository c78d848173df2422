// Command compose exits 1 and says why if Docker would refuse a compose file or
// a Dockerfile. It is docker compose config and docker build --check without
// Docker.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: compose COMPOSE-FILE DOCKERFILE")
		os.Exit(2)
	}
	if err := check(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func check(compose, dockerfile string) error {
	options, err := cli.NewProjectOptions([]string{compose}, cli.WithName("writ"))
	if err != nil {
		return err
	}
	if _, err := options.LoadProject(context.Background()); err != nil {
		return err
	}
	f, err := os.Open(dockerfile)
	if err != nil {
		return err
	}
	defer f.Close()
	parsed, err := parser.Parse(f)
	if err != nil {
		return err
	}
	_, _, err = instructions.Parse(parsed.AST, nil)
	return err
}
