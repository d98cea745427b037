package load

import (
	"context"
	"fmt"

	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/mysql"
)

// heldState is the state in which an event waits for the end of the restore, in place of ENABLE. If binary logs follow it is one that
// nothing else sets for an event here: a different one at the end comes from the logs. On a replica it is the one that they keep.
func (r *run) heldState() string {
	if !r.o.Until.IsZero() || r.o.Replica {
		return r.server.DisableOnReplica()
	}
	return "DISABLE"
}

// makeEvent makes an event. One that the server does not make because all its times are over is noted: its original server drops it
// too, once it checks. If binary logs follow, which may alter or drop it, it is made nevertheless, as if it were long ago. Source: MySQL
// manual, "CREATE EVENT Statement"; ER_EVENT_CANNOT_CREATE_IN_THE_PAST.
func (r *run) makeEvent(ctx context.Context, s *session, o *repo.Object, statement string) error {
	past, err := s.tryEvent(ctx, statement)
	if err != nil || !past {
		return err
	}
	if r.o.Until.IsZero() && !r.o.Hold {
		r.leavePast(o)
		return nil
	}
	if err := s.Exec(ctx, "SET SESSION /* risso: binary logs follow, which may give it other times */ timestamp = 1"); err != nil {
		return err
	}
	past, err = s.tryEvent(ctx, statement)
	if s.Broken() == nil {
		if berr := s.Exec(ctx, "SET SESSION timestamp = DEFAULT"); err == nil {
			err = berr
		}
	}
	if past {
		r.leavePast(o)
	}
	return err
}

// tryEvent makes an event, unless all its times are over.
func (s *session) tryEvent(ctx context.Context, statement string) (past bool, err error) {
	const inThePast = "1588"
	if err := s.Exec(ctx, statement); err != nil {
		return false, err
	}
	err = s.Query(ctx, "SHOW /* risso: was it made? */ WARNINGS", func(row [][]byte) error {
		past = past || string(row[1]) == inThePast
		return nil
	})
	return past, err
}

// leavePast notes an event that is not there, because its times are over.
func (r *run) leavePast(o *repo.Object) {
	if !r.leftOut[objectKey(o)] {
		r.leftOut[objectKey(o)] = true
		r.notef("%s", pastEvent(o))
	}
}

func pastEvent(o *repo.Object) string {
	return fmt.Sprintf("event %s is not created: its last time is past, and it is ON COMPLETION NOT PRESERVE: %s", objectName(o), o.Create)
}

// switchOn sets events to the state that they had, or that the binary logs set. ALTER EVENT would take over definer, sql_mode and time zone
// of the session (MySQL manual, "ALTER EVENT Statement"), so the session uses those of the event.
func (r *run) switchOn(ctx context.Context, s **session) error {
	return r.each([]repo.ObjectKind{repo.Event}, func(o *repo.Object) error {
		c, err := r.dialect(o).ReadCreate(o.Create)
		if err != nil {
			return err
		}
		if r.leftOut[objectKey(o)] || c.State.Name != "ENABLE" && r.o.Until.IsZero() {
			return nil
		}
		definer := r.definerOf(o, c)
		schema := r.choice.targetSchema(o.Schema)
		err = r.again(ctx, s, func(s *session) error {
			if err := s.use(ctx, schema); err != nil {
				return err
			}
			return r.inContext(ctx, s, o, schema, func(text func(string) (string, error)) error {
				if held, err := r.isHeld(ctx, s, o, schema); err != nil || !held || c.State.Name != "ENABLE" {
					return err
				}
				statement, err := text("ALTER " + definer + "EVENT " + mysql.Quote(o.Name) + " ENABLE")
				if err != nil {
					return err
				}
				return s.Exec(ctx, statement)
			})
		})
		if err != nil {
			return fmt.Errorf("switch event %s on: %w", objectName(o), err)
		}
		return nil
	})
}

// isHeld reports whether an event still has the state that it was given here. One that was made for the binary logs to alter, but whose times are
// over, is dropped: a server has no such events. Its times are in its own time zone. Source: MySQL manual, "The INFORMATION_SCHEMA
// EVENTS Table".
func (r *run) isHeld(ctx context.Context, s *session, o *repo.Object, schema string) (held bool, err error) {
	if r.o.Until.IsZero() {
		return true, nil
	}
	past := false
	err = s.Query(ctx, "SELECT /* risso: what have the binary logs made of it? */ STATUS, ON_COMPLETION = 'NOT PRESERVE' AND COALESCE(EXECUTE_AT, ENDS) < CONVERT_TZ(UTC_TIMESTAMP(), '+00:00', TIME_ZONE) FROM information_schema.EVENTS WHERE EVENT_SCHEMA = "+
		mysql.Literal(schema)+" AND EVENT_NAME = "+mysql.Literal(o.Name), func(row [][]byte) error {
		held, past = mysql.DisabledOnReplica(string(row[0])), string(row[1]) == "1"
		return nil
	})
	if err != nil || !past {
		return held, err
	}
	if err := r.toldOfRolling(ctx, s, told{Note: pastEvent(o)}); err != nil {
		return false, err
	}
	if err := s.Exec(ctx, "DROP EVENT IF EXISTS "+mysql.Quote(schema)+"."+mysql.Quote(o.Name)); err != nil {
		return false, err
	}
	r.leavePast(o)
	return false, r.toldOfRolling(ctx, s, told{Objects: r.made.Add(-1)})
}
