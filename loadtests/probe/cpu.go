package main

import (
	"crypto/aes"
	"crypto/cipher"
	"time"

	"golang.org/x/crypto/chacha20poly1305"
	"golang.org/x/sys/cpu"

	"authstack.dev/authstack/internal/probe"
)

const (
	// record is the largest of TLS (RFC 8446, 5.1).
	record = 16 << 10
	// cpuTime for each cipher.
	cpuTime = 500 * time.Millisecond
)

// measureCPU encrypts records on one core with the two ciphers that TLS 1.3 uses most.
func measureCPU() *probe.CPU {
	block, err := aes.NewCipher(make([]byte, 16))
	if err != nil {
		panic(err) // The length of the key is right.
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		panic(err)
	}
	chacha, err := chacha20poly1305.New(make([]byte, chacha20poly1305.KeySize))
	if err != nil {
		panic(err)
	}
	return &probe.CPU{
		AESInstructions:      cpu.X86.HasAES && cpu.X86.HasPCLMULQDQ || cpu.ARM64.HasAES && cpu.ARM64.HasPMULL || cpu.S390X.HasAESGCM,
		AESGCMBytesPerSecond: bytesPerSecond(gcm), ChaCha20Poly1305BytesPerSecond: bytesPerSecond(chacha),
	}
}

func bytesPerSecond(aead cipher.AEAD) int64 {
	// The keys and nonces protect nothing: what is encrypted are zeros, and it is thrown away.
	nonce, text := make([]byte, aead.NonceSize()), make([]byte, record, record+aead.Overhead())
	var bytes int64
	start := time.Now()
	for time.Since(start) < cpuTime {
		aead.Seal(text[:0], nonce, text, nil)
		bytes += record
	}
	return int64(float64(bytes) / time.Since(start).Seconds())
}
