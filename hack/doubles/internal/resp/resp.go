// Package resp is a small Redis client. It exists because one double must behave badly on purpose: Authelia dials
// Redis anew for every command (facts/authelia.md §1.5), which no pooling client can be made to do.
package resp

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
)

// Options say where Redis is and how to greet it.
type Options struct {
	Network, Addr      string // tcp and host:port, or unix and a path
	Username, Password string
	DB                 int
	TLS                *tls.Config
	Timeout            time.Duration // of dial, read and write; 0 is 5 s
	Greet              bool          // HELLO 3 with AUTH, then CLIENT SETINFO twice, as go-redis does
}

// Error is a reply that starts with a minus sign.
type Error string

func (e Error) Error() string { return string(e) }

// Conn is one connection; not for use by two goroutines at once.
type Conn struct {
	c   net.Conn
	r   *bufio.Reader
	max time.Duration
}

// Dial connects and greets.
func Dial(ctx context.Context, o Options) (*Conn, error) {
	if o.Timeout == 0 {
		o.Timeout = 5 * time.Second
	}
	d := net.Dialer{Timeout: o.Timeout}
	c, err := d.DialContext(ctx, o.Network, o.Addr)
	if err != nil {
		return nil, err
	}
	if o.TLS != nil {
		c = tls.Client(c, o.TLS)
	}
	conn := &Conn{c: c, r: bufio.NewReaderSize(c, 32<<10), max: o.Timeout}
	if err := conn.greet(o); err != nil {
		_ = c.Close()
		return nil, err
	}
	return conn, nil
}

func (c *Conn) greet(o Options) error {
	user := o.Username
	if user == "" {
		user = "default"
	}
	if o.Greet {
		hello := []string{"HELLO", "3"}
		if o.Password != "" {
			hello = append(hello, "AUTH", user, o.Password)
		}
		if _, err := c.Do(hello...); err != nil {
			return err
		}
		// One round trip for the two, as go-redis pipelines them. Redis before 7.2 does not know them, which go-redis
		// ignores.
		if err := c.send("CLIENT", "SETINFO", "LIB-NAME", "go-redis(,go1.26.0)"); err != nil {
			return err
		}
		if err := c.send("CLIENT", "SETINFO", "LIB-VER", "9.18.0"); err != nil {
			return err
		}
		for range 2 {
			var re Error
			if _, err := c.read(); err != nil && !errors.As(err, &re) {
				return err
			}
		}
	} else if o.Password != "" {
		if _, err := c.Do("AUTH", user, o.Password); err != nil {
			return err
		}
	}
	if o.DB != 0 {
		_, err := c.Do("SELECT", strconv.Itoa(o.DB))
		return err
	}
	return nil
}

// Close closes the connection.
func (c *Conn) Close() error { return c.c.Close() }

// Do sends one command and reads its reply: nil, string, int64, or []any.
func (c *Conn) Do(args ...string) (any, error) {
	if err := c.send(args...); err != nil {
		return nil, err
	}
	return c.read()
}

func (c *Conn) send(args ...string) error {
	_ = c.c.SetDeadline(time.Now().Add(c.max))
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
	}
	_, err := c.c.Write([]byte(b.String()))
	return err
}

func (c *Conn) read() (any, error) {
	line, err := c.r.ReadString('\n')
	if err != nil {
		return nil, err
	}
	line = strings.TrimRight(line, "\r\n")
	if line == "" {
		return nil, errors.New("resp: empty reply")
	}
	rest := line[1:]
	switch line[0] {
	case '+', ',', '(', '#':
		return rest, nil
	case '-':
		return nil, Error(rest)
	case ':':
		return strconv.ParseInt(rest, 10, 64)
	case '_':
		return nil, nil
	case '$', '=':
		n, err := strconv.Atoi(rest)
		if err != nil || n < 0 {
			return nil, err
		}
		buf := make([]byte, n+2)
		if _, err := readFull(c.r, buf); err != nil {
			return nil, err
		}
		return string(buf[:n]), nil
	case '*', '~', '>', '%':
		n, err := strconv.Atoi(rest)
		if err != nil || n < 0 {
			return nil, err
		}
		if line[0] == '%' {
			n *= 2
		}
		out := make([]any, n)
		for i := range out {
			if out[i], err = c.read(); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return nil, fmt.Errorf("resp: reply of unknown kind %q", line[0])
}

func readFull(r *bufio.Reader, b []byte) (int, error) {
	n := 0
	for n < len(b) {
		m, err := r.Read(b[n:])
		n += m
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// Pool keeps connections for reuse, for the client that does pool.
type Pool struct {
	o    Options
	free chan *Conn
}

// NewPool keeps up to n idle connections.
func NewPool(o Options, n int) *Pool { return &Pool{o: o, free: make(chan *Conn, n)} }

// Do runs one command on a pooled connection.
func (p *Pool) Do(ctx context.Context, args ...string) (any, error) {
	var c *Conn
	select {
	case c = <-p.free:
	default:
		var err error
		if c, err = Dial(ctx, p.o); err != nil {
			return nil, err
		}
	}
	v, err := c.Do(args...)
	var re Error
	if err != nil && !errors.As(err, &re) {
		_ = c.Close()
		return nil, err
	}
	select {
	case p.free <- c:
	default:
		_ = c.Close()
	}
	return v, err
}
