package result

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Read finds the result in a log. Other lines may stand around and between those of the frame, and
// each line may carry what a container runtime or the kubelet puts before it (a time, CRI's
// "stdout F"). Of several frames the last complete one counts. The errors are ErrNoResult,
// ErrTruncated, ErrCorrupt, ErrUnsupportedVersion, or that of the reader.
func Read(r io.Reader) (*Run, error) { return ReadFrame(r, decodeRun) }

// ReadFrame finds the last frame of a log and decodes what is in it, with the errors of Read. Decode
// gets the JSON and the format that it names, and refuses another format than its own with
// ErrUnsupportedVersion and what makes no sense with ErrCorrupt.
func ReadFrame[T any](r io.Reader, decode func(content []byte, format string) (*T, error)) (*T, error) {
	var (
		lines = bufio.NewReaderSize(r, 4*lineLength)
		found *T
		// worst is why the last frame could not be used.
		worst error
		open  *frame
	)
	for {
		line, err := readLine(lines)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("read log: %w", err)
		}
		switch {
		case bytes.Contains(line, []byte(beginMark)):
			var headErr error
			open, headErr = parseBegin(line)
			worst, found = headErr, nil
			if headErr == nil {
				// Stands until the end of the frame is seen.
				worst = fmt.Errorf("%w: its end is missing", ErrTruncated)
			}
		case bytes.Contains(line, []byte(endMark)):
			switch {
			case open != nil:
				var content []byte
				var format string
				if content, format, worst = open.close(); worst == nil {
					found, worst = decode(content, format)
				}
			case worst == nil && found == nil:
				worst = fmt.Errorf("%w: its beginning is missing", ErrTruncated)
			}
			open = nil
		case open != nil:
			open.add(line)
		}
		if errors.Is(err, io.EOF) {
			break
		}
	}
	switch {
	case worst != nil:
		return nil, worst
	case found != nil:
		return found, nil
	}
	return nil, ErrNoResult
}

// frame is one whose beginning was seen.
type frame struct {
	sum    string
	length int
	// want is how many characters of base64 make length bytes.
	want int
	text []byte
}

// parseBegin reads the first line of a frame, whatever stands before the mark.
func parseBegin(line []byte) (*frame, error) {
	_, rest, _ := strings.Cut(string(line), beginMark)
	head, _, ok := strings.Cut(rest, markEnd)
	if !ok {
		return nil, fmt.Errorf("%w: its first line is cut off", ErrTruncated)
	}
	fields := strings.Fields(head)
	if len(fields) > 0 && fields[0] != version {
		return nil, fmt.Errorf("%w: %.32q, this reader knows %q", ErrUnsupportedVersion, fields[0], version)
	}
	if len(fields) != 3 {
		return nil, fmt.Errorf("%w: its first line is not understood", ErrCorrupt)
	}
	length, err := strconv.Atoi(fields[2])
	if sum, sumErr := hex.DecodeString(fields[1]); sumErr != nil || len(sum) != 32 || err != nil || length <= 0 || length > maxPacked {
		return nil, fmt.Errorf("%w: its first line is not understood", ErrCorrupt)
	}
	return &frame{sum: strings.ToLower(fields[1]), length: length, want: (length + 2) / 3 * 4}, nil
}

// add takes a line of the frame's content and passes over what is none: every line of it but the
// last has lineLength characters, and the length of the last follows from the frame's first line.
func (f *frame) add(line []byte) {
	// Base64 has no space, so whatever a runtime puts before a line ends at the last one.
	if i := bytes.LastIndexByte(line, ' '); i >= 0 {
		line = line[i+1:]
	}
	next := min(lineLength, f.want-len(f.text))
	if next == 0 || len(line) != next || !isBase64(line) {
		return
	}
	f.text = append(f.text, line...)
}

// close ends the frame.
func (f *frame) close() (content []byte, format string, err error) {
	if len(f.text) < f.want {
		return nil, "", fmt.Errorf("%w: %d of %d characters are there", ErrTruncated, len(f.text), f.want)
	}
	return unpack(f.text, f.sum, f.length)
}

func isBase64(line []byte) bool {
	for _, c := range line {
		switch {
		case c >= 'A' && c <= 'Z', c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '+', c == '/', c == '=':
		default:
			return false
		}
	}
	return true
}

// readLine returns a line without its end. Of a line longer than the buffer only the beginning is
// returned, since no line of a frame is that long.
func readLine(r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadSlice('\n')
	kept := bytes.TrimRight(bytes.Clone(line), "\r\n")
	for errors.Is(err, bufio.ErrBufferFull) {
		_, err = r.ReadSlice('\n')
	}
	return kept, err
}
