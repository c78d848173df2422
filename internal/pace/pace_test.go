package pace

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p Pace
		hurry := make(chan struct{})
		rest := func(slice, want time.Duration) {
			t.Helper()
			time.Sleep(slice)
			began := time.Now()
			if p.Rest(4, hurry); time.Since(began) != want {
				t.Errorf("Rest after a slice of %v took %v, want %v", slice, time.Since(began), want)
			}
		}
		rest(time.Second, 0) // the first slice begins here
		rest(2*time.Millisecond, 8*time.Millisecond)
		rest(time.Millisecond, 4*time.Millisecond)
		time.AfterFunc(3*time.Second, func() { close(hurry) })
		rest(time.Second, 2*time.Second)
		rest(time.Second, 0)
	})
}
