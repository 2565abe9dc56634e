package sqlclient

import (
	"context"

	"authstack.dev/authstack/internal/durability"
	"authstack.dev/authstack/internal/facts"
	"authstack.dev/authstack/internal/stack"
)

// Observe connects and asks the database about itself.
func (c *Client) Observe(ctx context.Context, target stack.DatabaseTarget) (*facts.Database, error) {
	ctx, cancel := c.Bound(ctx)
	defer cancel()
	session, err := c.Connect(ctx, target)
	if err != nil {
		return nil, err
	}
	defer session.Close()
	return session.Observe(ctx)
}

// SetRole connects and gives the role its settings.
func (c *Client) SetRole(ctx context.Context, target stack.DatabaseTarget, has, want map[string]string, reset []string) (changed bool, err error) {
	ctx, cancel := c.Bound(ctx)
	defer cancel()
	session, err := c.Connect(ctx, target)
	if err != nil {
		return false, err
	}
	defer session.Close()
	return session.SetRole(ctx, has, want, reset)
}

// SetDurability connects and changes the triggers that decide which commits wait for the WAL.
func (c *Client) SetDurability(ctx context.Context, target stack.DatabaseTarget, change durability.Change) error {
	ctx, cancel := c.Bound(ctx)
	defer cancel()
	session, err := c.Connect(ctx, target)
	if err != nil {
		return err
	}
	defer session.Close()
	return session.SetDurability(ctx, change)
}

// Analyze connects and has statistics gathered; only the context bounds it.
func (c *Client) Analyze(ctx context.Context, target stack.DatabaseTarget) error {
	session, err := c.Connect(ctx, target)
	if err != nil {
		return err
	}
	defer session.Close()
	return session.Analyze(ctx)
}

// Commit connects and makes a commit that waits for the server's own disk, whatever the role is set to, and for no standby.
// It writes a message into the WAL that nobody reads (pg_logical_emit_message, which every role may call), and no row. Once
// connected only the context bounds it.
func (c *Client) Commit(ctx context.Context, target stack.DatabaseTarget) error {
	session, err := c.Connect(ctx, target)
	if err != nil {
		return err
	}
	defer session.Close()
	if _, err := session.conn.Exec(ctx, `SET synchronous_commit = local`); err != nil {
		return plain(err)
	}
	_, err = session.conn.Exec(ctx, `SELECT pg_catalog.pg_logical_emit_message(true, 'authstack', 'commit')`)
	return plain(err)
}
