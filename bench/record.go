package bench

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/go-json-experiment/json"

	"writ/bench/load"
)

// Header says what was measured, where and how. It is the first line of the raw data.
type Header struct {
	Command    string    `json:"command"`
	Date       string    `json:"date"`     // RFC 3339
	Revision   string    `json:"revision"` // of the driver
	Go         string    `json:"go"`
	Machine    string    `json:"machine"` // processor and kernel
	Processors int       `json:"processors"`
	Pinned     string    `json:"pinned"` // to which processors
	Load       string    `json:"load"`   // load averages at the start
	Work       Work      `json:"work"`
	Rounds     int       `json:"rounds"` // wanted
	Seconds    float64   `json:"seconds"`
	Warmup     float64   `json:"warmup"`    // seconds before each run
	MaxOther   float64   `json:"max_other"` // processors; a round with more is dropped; 0: none is
	Subjects   []About   `json:"subjects"`
	Skipped    []Skipped `json:"skipped,omitempty"`
}

// About is what a reader has to know of a subject.
type About struct {
	Name string `json:"name"`
	What string `json:"what"`
}

// Skipped is a peer that was asked for and not measured.
type Skipped struct {
	Name string `json:"name"`
	Why  string `json:"why"`
}

// Run is one line of the raw data: one subject under one load, once.
type Run struct {
	Round   int    `json:"round"` // from 1; dropped ones are counted, too
	Subject string `json:"subject"`
	Again   bool   `json:"again"` // the first subject once more: the noise of the round
	Load    string `json:"load"`  // as [Load.String] writes it

	Offered  float64 `json:"offered"` // arrivals a second; 0: closed loop
	Conns    int     `json:"conns"`
	Intents  int     `json:"intents"` // of a request
	Seconds  float64 `json:"seconds"`
	Accepted int     `json:"accepted"` // requests answered with 200
	Refused  int     `json:"refused"`  // with 503
	Unsent   int     `json:"unsent"`   // arrivals that were given up
	Bytes    int     `json:"bytes"`    // of the bodies of 200s

	// ServerSeconds and DriverSeconds are processor time; of the server 0 where it
	// cannot be read.
	ServerSeconds float64 `json:"server_seconds"`
	DriverSeconds float64 `json:"driver_seconds"`
	// BesideSeconds is the processor time of processes that work for the server, such as
	// a replica set.
	BesideSeconds float64 `json:"beside_seconds,omitzero"`

	// Other is how many processors others used meanwhile, Stolen what part of the
	// machine's time its host gave to others. Dropped says why the round does not count.
	Other   float64 `json:"other"`
	Stolen  float64 `json:"stolen"`
	Dropped string  `json:"dropped,omitempty"`

	// Latencies in HdrHistogram's encoding, in µs; see [load.Result].
	Scheduled load.Latencies `json:"scheduled"`
	Sent      load.Latencies `json:"sent"`
	Refusals  load.Latencies `json:"refusals"`
	Lateness  load.Latencies `json:"lateness"`
}

// Rate returns how many intents a second were decided.
func (r *Run) Rate() float64 {
	if r.Seconds == 0 {
		return 0
	}
	return float64(r.Accepted*r.Intents) / r.Seconds
}

// Processor returns the server's processor time for each intent that was decided, in
// µs; 0 where it is not known.
func (r *Run) Processor() float64 {
	if r.Accepted == 0 {
		return 0
	}
	return r.ServerSeconds * 1e6 / float64(r.Accepted*r.Intents)
}

// line is a line of the raw data.
type line struct {
	Header *Header `json:"header,omitempty"`
	Run    *Run    `json:"run,omitempty"`
}

// Data is what one file of raw data holds.
type Data struct {
	Header Header
	Runs   []*Run
}

func writeLine(w io.Writer, l line) error {
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	_, err = w.Write(append(text, '\n'))
	return err
}

// Read reads raw data. Its errors name the line.
func Read(r io.Reader) (*Data, error) {
	var d Data
	lines := bufio.NewReader(r)
	for n := 1; ; n++ {
		text, err := lines.ReadBytes('\n')
		if err == io.EOF && len(text) == 0 {
			break
		}
		if err != nil && err != io.EOF {
			return nil, err
		}
		var l line
		if err := json.Unmarshal(text, &l); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		switch {
		case n == 1 && l.Header != nil:
			d.Header = *l.Header
		case n > 1 && l.Run != nil:
			d.Runs = append(d.Runs, l.Run)
		default:
			return nil, fmt.Errorf("line %d is not what writ bench writes", n)
		}
	}
	if len(d.Runs) == 0 {
		return nil, errors.New("there is no run in it")
	}
	return &d, nil
}

func seconds(d time.Duration) float64 { return d.Seconds() }
