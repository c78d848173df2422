package ledger

import (
	"runtime"
	"sync"
)

// inParallel calls f with each i from 0 to n-1, on all processors. If several calls fail, it
// returns the error of the smallest i. After a failure it does not call f with a greater i.
func inParallel(n int, f func(i int) error) (err error) {
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex // guards next, end and err
		next int
		end  = n
	)
	work := func() {
		mu.Lock()
		defer mu.Unlock()
		for next < end {
			i := next
			next++
			mu.Unlock()
			why := f(i)
			mu.Lock()
			if why != nil && i < end {
				end, err = i, why
			}
		}
	}
	for range min(runtime.GOMAXPROCS(0), n) {
		wg.Go(work)
	}
	wg.Wait()
	return err
}
