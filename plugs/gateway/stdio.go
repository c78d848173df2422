package gateway

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Command returns the transport of a server that is a program, by its standard input and output. It
// gets this environment without the variables of writ: the key is the gateway's.
func Command(words []string, stderr io.Writer) mcp.Transport {
	cmd := exec.CommandContext(context.Background(), words[0], words[1:]...) // the connection's end ends it
	cmd.Stderr = stderr
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(strings.ToUpper(entry), "WRIT_") {
			cmd.Env = append(cmd.Env, entry)
		}
	}
	return &mcp.CommandTransport{Command: cmd}
}

// maxMessage bounds the bytes of a message.
const maxMessage = 16 << 20

// Stdio returns the transport of the client at in and out. A message that is no JSON, or
// has a member twice, is answered with an error and goes no further.
func Stdio(in io.Reader, out io.Writer) mcp.Transport {
	w := &lockedWriter{w: out}
	r, feed := io.Pipe()
	go func() { feed.CloseWithError(filter(in, feed, w)) }()
	return &mcp.IOTransport{Reader: r, Writer: w, MaxLineLength: maxMessage}
}

// filter copies the lines that are messages to out, and answers the others.
func filter(in io.Reader, out, answers io.Writer) error {
	lines := bufio.NewReaderSize(in, 64<<10)
	for {
		line, err := readLine(lines)
		if len(bytes.TrimSpace(line)) > 0 {
			if bad := strict(line); bad != nil {
				answer := append(refusal(line, bad), '\n')
				if _, err := answers.Write(answer); err != nil {
					return err
				}
			} else if _, err := out.Write(append(line, '\n')); err != nil {
				return err
			}
		}
		if err != nil {
			return err
		}
	}
}

// readLine returns the next line, without its end. A line that is too long ends the connection.
func readLine(r *bufio.Reader) (line []byte, err error) {
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > maxMessage:
			return nil, fmt.Errorf("a message is longer than %d bytes", maxMessage)
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		}
		return bytes.TrimRight(line, "\r\n"), err
	}
}

// strict says why a message can be read in two ways, or in none.
func strict(message []byte) error {
	dec := jsontext.NewDecoder(bytes.NewReader(message))
	if _, err := dec.ReadValue(); err != nil {
		return err
	}
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return errors.New("there is more behind the message")
	}
	return nil
}

// refusal is the answer to a message that is not strict.
func refusal(message []byte, why error) []byte {
	var of struct {
		ID json.RawMessage `json:"id"`
	}
	if json.Unmarshal(message, &of) != nil || of.ID == nil {
		of.ID = json.RawMessage("null")
	}
	data, err := json.Marshal(struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   *jsonrpc.Error  `json:"error"`
	}{"2.0", of.ID, fail(jsonrpc.CodeInvalidRequest, "the message is refused: %v", why)})
	if err != nil {
		return []byte(`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"the message is refused"}}`)
	}
	return data
}

// lockedWriter writes the messages of both, the SDK and filter, whole.
type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

func (l *lockedWriter) Close() error { return nil }
