package main

import "context"

// task is a goroutine with its end.
type task struct {
	stop context.CancelFunc
	done chan struct{}
}

// inBackground runs f, whose context keeps ctx's values alone: it ends with
// close.
func inBackground(ctx context.Context, f func(context.Context)) *task {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	b := &task{stop, make(chan struct{})}
	go func() {
		defer close(b.done)
		f(ctx)
	}()
	return b
}

// close returns once f has.
func (b *task) close() {
	b.stop()
	<-b.done
}
