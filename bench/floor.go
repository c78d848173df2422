package bench

import (
	"bytes"
	"context"
	"net/url"
	"strconv"

	"github.com/gofiber/fiber/v2"

	"writ.example/writ/bench/load"
)

// floorName is the name of the subject that shows the fastest server.
const floorName = "floor"

// ServeFloor runs a server at addr until ctx ends. The server is a bare Fiber handler that
// answers every request with a constant of size bytes. It is the fastest server that the
// framework allows.
func ServeFloor(ctx context.Context, addr string, size int) error {
	answer := append(append([]byte(`{"ok":true,"pad":"`), bytes.Repeat([]byte("x"), max(0, size-20))...), `"}`...)
	app := fiber.New(fiber.Config{DisableStartupMessage: true})
	app.Post("/", func(c *fiber.Ctx) error {
		c.Set(fiber.HeaderContentType, fiber.MIMEApplicationJSON)
		return c.Send(answer)
	})
	stop := context.AfterFunc(ctx, func() { _ = app.Shutdown() }) // makes Listen return
	defer stop()
	return app.Listen(addr)
}

// startFloor starts the floor server as a process of binary. The process gets the requests of
// the subject beside, and answers with as many bytes as beside does.
func startFloor(ctx context.Context, binary string, processors []int, beside *Subject) (*Subject, error) {
	size, err := load.Ask(ctx, beside.target)
	if err != nil {
		return nil, err
	}
	addr, err := freeAddress()
	if err != nil {
		return nil, err
	}
	p, err := startProcess(ctx, addr, processors, nil, binary, "bench", "floor", "--addr", addr, "--size",
		strconv.Itoa(size))
	if err != nil {
		return nil, err
	}
	t := *beside.target
	t.URL, t.Decides = &url.URL{Scheme: "http", Host: addr, Path: "/"}, false
	what := "a bare Fiber handler: the same request, a constant answer of as many bytes"
	return &Subject{About: About{floorName, what}, target: &t, pid: p.cmd.Process.Pid, stop: p.stop}, nil
}
