package authentik

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// The actors that a login sets going: one dispatch, and one handler per notification rule (three by default).
const (
	actorDispatch = "authentik.events.tasks.event_trigger_dispatch"
	actorHandler  = "authentik.events.tasks.event_trigger_handler"
	taskChannel   = "dramatiq.tasks.default.enqueue"
)

// commitsPerTask is what processing one task costs: 83 WAL syncs over 4 tasks per login were measured with the
// worker running (facts/authentik-measured.md §7). Its sources explain about eight of them: the states, two notes and a
// save of the whole task (facts/authentik.md §1.3). What the others write was not measured, so here it is a row that
// no durability relaxes: no setting of the operator shall gain by a guess.
const commitsPerTask = 21

// executor of statements that a task's code shares between a request and the worker.
type execer interface {
	exec(sql string, args ...any) error
	raw(sql string, args ...any) error
}

// enqueue inserts task and log; the caller holds the transaction, whose deferred trigger NOTIFYs.
func enqueue(d execer, actor, arg string) error {
	id := uuid.New()
	msg, _ := json.Marshal(map[string]any{"actor_name": actor, "args": []string{arg}, "padding": randomString(300, alnum)})
	return firstError(
		d.raw("SAVEPOINT s1"),
		d.exec(`INSERT INTO authentik_tasks_task (message_id, queue_name, actor_name, message, state, mtime, retries, aggregated_status, expires, expiring, tenant_id) VALUES ($1, 'default', $2, $3, 'queued', now(), 0, 'queued', now() + interval '30 days', true, $4)`, id, actor, msg, idTenant),
		d.raw("RELEASE SAVEPOINT s1"),
		d.exec(`INSERT INTO authentik_tasks_tasklog (task_id, event, log_level, logger, "timestamp", attributes, previous) VALUES ($1, 'Task has been queued', 'info', $2, now(), '{}', false)`, id, actor),
	)
}

// plain lets enqueue run on a bare connection.
type plain struct {
	ctx  context.Context
	conn *pgx.Conn
}

func (p plain) raw(sql string, args ...any) error {
	_, err := p.conn.Exec(p.ctx, sql, args...)
	return err
}

func (p plain) exec(sql string, args ...any) error {
	if _, err := p.conn.Exec(p.ctx, "SET search_path = 'public'"); err != nil {
		return err
	}
	return p.raw(sql, args...)
}

// consumer processes tasks on its own connections: one for the statements, one that holds each message's advisory
// lock (facts/authentik.md §1.3).
type consumer struct {
	cfg  *Config
	log  *slog.Logger
	wake <-chan struct{}
	// id is its row among the workers' statuses.
	id uuid.UUID
}

func (c *consumer) run(ctx context.Context) {
	for ctx.Err() == nil {
		if err := c.serve(ctx); err != nil && ctx.Err() == nil {
			c.log.Warn("consumer lost its connection", "error", err.Error())
			sleep(ctx, time.Second)
		}
	}
}

func (c *consumer) serve(ctx context.Context) error {
	work, err := c.cfg.connect(ctx)
	if err != nil {
		return err
	}
	defer work.Close(context.Background())
	lock, err := c.cfg.connectDirect(ctx)
	if err != nil {
		return err
	}
	defer lock.Close(context.Background())
	for ctx.Err() == nil {
		done, err := c.one(ctx, work, lock)
		if err != nil {
			return err
		}
		if !done {
			select {
			case <-c.wake:
			case <-ctx.Done():
			case <-time.After(30 * time.Second): // CONSUMER_LISTEN_TIMEOUT
			}
		}
	}
	return nil
}

// one takes the oldest waiting task; false when there is none.
func (c *consumer) one(ctx context.Context, work, lock *pgx.Conn) (bool, error) {
	rows, err := work.Query(ctx, `SELECT message_id, actor_name, message FROM authentik_tasks_task WHERE state IN ('queued', 'consumed') AND queue_name = 'default' ORDER BY mtime LIMIT 10`)
	if err != nil {
		return false, err
	}
	type task struct {
		id      uuid.UUID
		actor   string
		message []byte
	}
	list, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (t task, err error) {
		return t, r.Scan(&t.id, &t.actor, &t.message)
	})
	if err != nil {
		return false, err
	}
	for _, t := range list {
		var got bool
		if err := lock.QueryRow(ctx, "SELECT pg_try_advisory_lock(hashtextextended($1, 0))", t.id.String()).Scan(&got); err != nil {
			return false, err
		}
		if !got {
			continue
		}
		err := c.process(ctx, work, t.id, t.actor, t.message)
		if _, e := lock.Exec(ctx, "SELECT pg_advisory_unlock(hashtextextended($1, 0))", t.id.String()); err == nil {
			err = e
		}
		return true, err
	}
	return false, nil
}

// process walks a task through its states, each its own commit, with the log lines that the product keeps.
func (c *consumer) process(ctx context.Context, conn *pgx.Conn, id uuid.UUID, actor string, message []byte) error {
	p := plain{ctx, conn}
	start := time.Now()
	commits := 0
	// Only the state that the last look saw is taken: another worker may have finished the task meanwhile.
	tag, err := conn.Exec(ctx, `UPDATE authentik_tasks_task SET state = 'consumed', mtime = now() WHERE message_id = $1 AND state IN ('queued', 'consumed')`, id)
	if err != nil || tag.RowsAffected() == 0 {
		return err
	}
	commits++
	state := func(s, aggregated string) error {
		commits++
		return p.exec(`UPDATE authentik_tasks_task SET state = $2, aggregated_status = $3, mtime = now() WHERE message_id = $1`, id, s, aggregated)
	}
	note := func(event string) error {
		commits++
		return p.exec(`INSERT INTO authentik_tasks_tasklog (task_id, event, log_level, logger, "timestamp", attributes, previous) VALUES ($1, $2, 'info', $3, now(), '{}', false)`, id, event, actor)
	}
	if err := firstError(state("preprocess", "queued"), note("Task has been consumed"), state("running", "running"), note("Task is being processed")); err != nil {
		return err
	}
	if actor == actorDispatch {
		var m struct {
			Args []string `json:"args"`
		}
		_ = json.Unmarshal(message, &m)
		arg := ""
		if len(m.Args) > 0 {
			arg = m.Args[0]
		}
		for range notification {
			commits++
			if err := firstError(p.raw("BEGIN"), enqueue(p, actorHandler, arg), p.raw("COMMIT")); err != nil {
				return err
			}
		}
	}
	for commits < commitsPerTask-4 {
		commits++
		if err := p.exec(`INSERT INTO authentik_tasks_workerstatus (workerstatus_uuid, col_06) VALUES ($1, now()) ON CONFLICT (workerstatus_uuid) DO UPDATE SET col_06 = now()`, c.id); err != nil {
			return err
		}
	}
	save := func() error {
		commits++
		return p.exec(`UPDATE authentik_tasks_task SET retries = retries, expires = expires WHERE message_id = $1`, id)
	}
	if err := firstError(state("postprocess", "running"), note("Task finished processing without errors"), save(), state("done", "done")); err != nil {
		return err
	}
	c.log.Info("Task finished processing without errors", "task_name", actor, "task_id", id.String(), "runtime", time.Since(start).Milliseconds())
	return nil
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
