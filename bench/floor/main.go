// Command floor is the fastest server the framework allows: a bare Fiber
// handler that answers every request with a constant of the size of an
// evaluation result. What writ adds to a request is measured against it.
package main

import (
	"bytes"
	"flag"
	"log"

	"github.com/gofiber/fiber/v2"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:3830", "address to listen on")
	size := flag.Int("size", 800, "bytes of the constant answer")
	flag.Parse()
	answer := append(append([]byte(`{"ok":true,"pad":"`), bytes.Repeat([]byte("x"), max(0, *size-20))...), `"}`...)
	app := fiber.New(fiber.Config{DisableStartupMessage: true})
	app.Post("/", func(c *fiber.Ctx) error {
		c.Set(fiber.HeaderContentType, fiber.MIMEApplicationJSON)
		return c.Send(answer)
	})
	log.Fatal(app.Listen(*addr))
}
