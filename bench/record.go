package bench

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/go-json-experiment/json"

	"writ.example/writ/bench/load"
)

// Header describes a measurement: the work, the place and the settings. It is the first line of
// the raw data.
type Header struct {
	Command    string    `json:"command"`
	Date       string    `json:"date"`     // in the form of RFC 3339
	Revision   string    `json:"revision"` // the revision of the driver
	Go         string    `json:"go"`
	Machine    string    `json:"machine"` // the processor and the kernel
	Processors int       `json:"processors"`
	Pinned     string    `json:"pinned"` // the processors that it is pinned to
	Load       string    `json:"load"`   // the load averages at the start
	Work       Work      `json:"work"`
	Rounds     int       `json:"rounds"` // the number of wanted rounds
	Seconds    float64   `json:"seconds"`
	Warmup     float64   `json:"warmup"`    // in seconds, before each run
	MaxOther   float64   `json:"max_other"` // in processors; a round with more is dropped; 0: no round is dropped
	Subjects   []About   `json:"subjects"`
	Skipped    []Skipped `json:"skipped,omitempty"`
}

// About describes a subject for a reader.
type About struct {
	Name string `json:"name"`
	What string `json:"what"`
}

// Skipped is a requested peer that was not measured.
type Skipped struct {
	Name string `json:"name"`
	Why  string `json:"why"`
}

// Run is one line of the raw data. It is one measurement of one subject under one load.
type Run struct {
	Round   int    `json:"round"` // from 1; dropped rounds are counted too
	Subject string `json:"subject"`
	Again   bool   `json:"again"` // the first subject once more, to show the noise of the round
	Load    string `json:"load"`  // in the form of [Load.String]

	Offered  float64 `json:"offered"` // arrivals per second; 0: a closed loop
	Conns    int     `json:"conns"`
	Intents  int     `json:"intents"` // the intents of a request
	Seconds  float64 `json:"seconds"`
	Accepted int     `json:"accepted"` // requests that were answered with 200
	Refused  int     `json:"refused"`  // requests that were answered with 503
	Unsent   int     `json:"unsent"`   // arrivals that were given up
	Bytes    int     `json:"bytes"`    // the size of the bodies of answers with 200

	// Decisions counts what a writ decided, by the names of decisions. Mismatched counts decisions that were not
	// wanted. Mismatch describes the first of them.
	Decisions  map[string]int `json:"decisions,omitempty"`
	Mismatched int            `json:"mismatched,omitzero"`
	Mismatch   string         `json:"mismatch,omitzero"`

	// ServerSeconds and DriverSeconds are processor times. ServerSeconds is 0 if it cannot be
	// read.
	ServerSeconds float64 `json:"server_seconds"`
	DriverSeconds float64 `json:"driver_seconds"`
	// BesideSeconds is the processor time of processes that work for the server, such as
	// a replica set.
	BesideSeconds float64 `json:"beside_seconds,omitzero"`
	// Resident is the resident memory of the server after the run, in bytes. It is 0 if it cannot be read.
	Resident int `json:"resident,omitzero"`

	// Other is how many processors others used during the run. Stolen is the share of the
	// machine's time that its host gave to others. Dropped says why the round does not count.
	Other   float64 `json:"other"`
	Stolen  float64 `json:"stolen"`
	Dropped string  `json:"dropped,omitempty"`

	// The latencies are in HdrHistogram's encoding, in µs; see [load.Result].
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

// Processor returns the server's processor time for each decided intent, in µs. It returns 0 if
// the time is not known.
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

// Data is the content of a file of raw data.
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

// Read reads raw data. Each error names the line.
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
