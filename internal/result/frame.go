package result

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// The frame around a result in a log:
//
//	-----BEGIN AUTHSTACK RESULT v1 <sha256 of the gzip, hex> <its length in bytes>-----
//	<base64 of the gzip of the JSON, in lines of lineLength characters, the last one shorter>
//	-----END AUTHSTACK RESULT v1-----
const (
	beginMark = "-----BEGIN AUTHSTACK RESULT "
	endMark   = "-----END AUTHSTACK RESULT "
	markEnd   = "-----"
	version   = "v1"
	// lineLength stays far below the 16 KiB at which container runtimes split a line.
	lineLength = 960
	// maxFrame bounds what a writer writes, without the line breaks: a result stays below 1 MiB, so that
	// it fits a ConfigMap and never fills a log that the kubelet rotates.
	maxFrame = 1_000_000
	// maxPacked and maxUnpacked bound what a log can make the reader hold.
	maxPacked   = 8 << 20
	maxUnpacked = 64 << 20
)

// What Read can find wrong. errors.Is tells them apart.
var (
	// ErrNoResult: the log has no frame at all; the run ended before it could write one.
	ErrNoResult = errors.New("no result in the log")
	// ErrTruncated: a frame begins or ends but part of it is missing.
	ErrTruncated = errors.New("result in the log is truncated")
	// ErrCorrupt: the frame is whole and its content does not match its checksum or makes no sense.
	ErrCorrupt = errors.New("result in the log is corrupt")
	// ErrTooLong: what is left after all trims is still longer than a frame may be.
	ErrTooLong = errors.New("result is too long")
	// ErrUnsupportedVersion: the result was written in another version of this format.
	ErrUnsupportedVersion = errors.New("result has an unsupported version")
)

// Write writes the run in its frame, from the beginning of a line to the end of one. What would be
// longer than maxFrame is trimmed first; the run then says what was left out. ErrTooLong where that is not enough.
func Write(w io.Writer, run *Run) error {
	run.Format = Format
	run.Sort()
	if err := run.validate(); err != nil {
		return fmt.Errorf("write result: %w", err)
	}
	packed, err := pack(run)
	for _, trim := range trims {
		if err != nil || base64.StdEncoding.EncodedLen(packed.Len()) <= maxFrame {
			break
		}
		run.Trimmed = append(run.Trimmed, trim.what)
		trim.from(run)
		packed, err = pack(run)
	}
	if err != nil {
		return fmt.Errorf("write result: %w", err)
	}
	if base64.StdEncoding.EncodedLen(packed.Len()) > maxFrame {
		return fmt.Errorf("write result: %w: %d bytes are left of %d at most", ErrTooLong, packed.Len(), maxFrame)
	}
	return writeFrame(w, packed)
}

// WriteFrame writes any result in the frame: its JSON form has the field format.
func WriteFrame(w io.Writer, content any) error {
	packed, err := pack(content)
	if err != nil {
		return fmt.Errorf("write result: %w", err)
	}
	return writeFrame(w, packed)
}

func writeFrame(w io.Writer, packed *bytes.Buffer) error {
	sum := sha256.Sum256(packed.Bytes())
	var out bytes.Buffer
	fmt.Fprintf(&out, "%s%s %x %d%s\n", beginMark, version, sum, packed.Len(), markEnd)
	for text := base64.StdEncoding.EncodeToString(packed.Bytes()); text != ""; {
		line := text[:min(lineLength, len(text))]
		text = text[len(line):]
		out.WriteString(line + "\n")
	}
	fmt.Fprintf(&out, "%s%s%s\n", endMark, version, markEnd)
	if _, err := w.Write(out.Bytes()); err != nil {
		return fmt.Errorf("write result: %w", err)
	}
	return nil
}

// trims are what a result that is too long loses, the least missed first. Counts, totals and their
// percentiles are always whole; those from the intended start and of a script's own Trends stay, within 3 %.
var trims = []struct {
	what string
	from func(*Run)
}{
	{"timelines in fine intervals", eachSeries(func(s *Series) { s.Timeline.Limit(8) })},
	{"the phases dns, connect, tls, send and receive", eachSeries(func(s *Series) { s.DNS, s.Connect, s.TLS, s.Send, s.Receive = nil, nil, nil, nil, nil })},
	{"Trends of the script's own finer than 3 %", func(r *Run) {
		for _, s := range r.Scenarios {
			for i := range s.Metrics {
				s.Metrics[i].Values = s.Metrics[i].Values.coarse()
			}
		}
	}},
	{"the phase wait", eachSeries(func(s *Series) { s.Wait = nil })},
	{"durations from the intended start finer than 3 %", eachSeries(func(s *Series) { s.Intended = s.Intended.coarse() })},
}

func eachSeries(trim func(*Series)) func(*Run) {
	return func(r *Run) {
		for i := range r.Series {
			trim(&r.Series[i])
		}
	}
}

func pack(content any) (*bytes.Buffer, error) {
	var packed bytes.Buffer
	z, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err := json.NewEncoder(z).Encode(content); err != nil {
		return nil, err
	}
	return &packed, z.Close()
}

// unpack turns the content of a frame into the JSON in it and its format.
func unpack(text []byte, wantSum string, wantLength int) (content []byte, format string, err error) {
	packed, err := base64.StdEncoding.DecodeString(string(text))
	if err != nil {
		return nil, "", fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	sum := sha256.Sum256(packed)
	if len(packed) != wantLength || hex.EncodeToString(sum[:]) != wantSum {
		return nil, "", fmt.Errorf("%w: its checksum does not match", ErrCorrupt)
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, "", fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	data, err := io.ReadAll(io.LimitReader(z, maxUnpacked+1))
	switch {
	case err != nil:
		return nil, "", fmt.Errorf("%w: %w", ErrCorrupt, err)
	case len(data) > maxUnpacked:
		return nil, "", fmt.Errorf("%w: it unpacks to more than %d bytes", ErrCorrupt, maxUnpacked)
	}
	// The format is looked at before the rest, which another version may write differently.
	var head struct {
		Format string `json:"format"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, "", fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return data, head.Format, nil
}

// decodeRun reads a run of this format.
func decodeRun(content []byte, format string) (*Run, error) {
	if format != Format {
		return nil, (&Run{Format: format}).validate()
	}
	run := &Run{}
	if err := json.Unmarshal(content, run); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	if err := cmp.Or(run.validate(), run.plausible()); err != nil {
		return nil, err
	}
	return run, nil
}
