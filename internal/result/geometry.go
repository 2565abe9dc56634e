package result

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// checkGeometry looks at the header of an encoded histogram before it is decoded: the decoder
// allocates whatever the header asks for, and a log is not to be trusted with that.
func checkGeometry(encoded string) error {
	raw, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return fmt.Errorf("decode histogram: %w", err)
	}
	if len(raw) < 8 {
		return errors.New("decode histogram: too short")
	}
	z, err := zlib.NewReader(bytes.NewReader(raw[8:]))
	if err != nil {
		return fmt.Errorf("decode histogram: %w", err)
	}
	// Cookie, payload length, normalising offset, significant digits (4 bytes each), lowest and
	// highest value (8 bytes each), conversion ratio (8 bytes).
	var header [40]byte
	if _, err := io.ReadFull(z, header[:]); err != nil {
		return fmt.Errorf("decode histogram: %w", err)
	}
	digits := binary.BigEndian.Uint32(header[12:])
	lowest, highest := binary.BigEndian.Uint64(header[16:]), binary.BigEndian.Uint64(header[24:])
	if digits != significantDigits || lowest != 1 || highest != uint64(MaxMicros) {
		return fmt.Errorf("histogram has %d digits from %d to %d, this format has %d digits from 1 to %d",
			digits, lowest, highest, significantDigits, MaxMicros)
	}
	return nil
}
