// SPDX-License-Identifier: AGPL-3.0-only

//go:build calibration

package main

import (
	byteorder "encoding/binary"
	"net/url"
	"strconv"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// wire listens on the loopback interface and takes the kernel's times of packets: from a request's arrival at the server
// until the arrival of its answer at the client. What a server says of itself leaves out how long its answer waited for a
// processor, and what a client says is what is to be judged.
type wire struct {
	port uint16

	mu    sync.Mutex
	asked map[uint16]time.Time // By the client's port: one request at a time on a connection.
	taken []time.Duration
}

// listen to the server of that address until the test ends. It needs root.
func listen(t *testing.T, address string) *wire {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	if err != nil {
		t.Fatal(err)
	}
	protocol := uint16(unix.ETH_P_IP<<8&0xff00 | unix.ETH_P_IP>>8) // In the network's order.
	socket, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, int(protocol))
	if err != nil {
		t.Fatalf("the packets of the loopback interface cannot be seen: %v (run this as root)", err)
	}
	w := &wire{port: uint16(port), asked: map[uint16]time.Time{}}
	for _, err := range []error{
		unix.SetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1),
		unix.SetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 32<<20),
		unix.SetsockoptTimeval(socket, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 200_000}),
		unix.Bind(socket, &unix.SockaddrLinklayer{Protocol: protocol, Ifindex: 1}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	over, gone := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { close(over); <-gone })
	go func() {
		defer close(gone)
		defer func() { _ = unix.Close(socket) }()
		packet, control := make([]byte, 256), make([]byte, 128)
		for {
			select {
			case <-over:
				return
			default:
			}
			n, m, _, from, err := unix.Recvmsg(socket, packet, control, unix.MSG_TRUNC)
			// A packet of the loopback interface is seen when it leaves and when it arrives.
			if link, ok := from.(*unix.SockaddrLinklayer); err != nil || !ok || link.Pkttype != unix.PACKET_HOST {
				continue
			}
			if at, ok := arrival(control[:m]); ok {
				w.packet(packet[:min(n, len(packet))], at)
			}
		}
	}()
	return w
}

// arrival is the kernel's time in the control messages of a packet.
func arrival(control []byte) (time.Time, bool) {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return time.Time{}, false
	}
	for _, message := range messages {
		if message.Header.Type == unix.SO_TIMESTAMPNS && len(message.Data) >= 16 {
			return time.Unix(int64(byteorder.NativeEndian.Uint64(message.Data)), int64(byteorder.NativeEndian.Uint64(message.Data[8:]))), true
		}
	}
	return time.Time{}, false
}

// packet of IPv4 and TCP; one without content says nothing.
func (w *wire) packet(p []byte, at time.Time) {
	if len(p) < 40 || p[9] != unix.IPPROTO_TCP {
		return
	}
	header := int(p[0]&0xf) * 4
	if len(p) < header+20 || int(byteorder.BigEndian.Uint16(p[2:])) <= header+int(p[header+12]>>4)*4 {
		return
	}
	from, to := byteorder.BigEndian.Uint16(p[header:]), byteorder.BigEndian.Uint16(p[header+2:])
	w.mu.Lock()
	defer w.mu.Unlock()
	switch w.port {
	case to:
		w.asked[from] = at
	case from:
		if began, ok := w.asked[to]; ok {
			delete(w.asked, to)
			w.taken = append(w.taken, at.Sub(began))
		}
	}
}
