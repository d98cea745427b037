package mysql

import (
	"context"
	"fmt"
)

// Event is an event of the scheduler, as a server has it.
type Event struct {
	Schema, Name string
	Definer      string // user@host
	Status       string // ENABLED, DISABLED, or as DisabledOnReplica
	mode, zone   string
	client, conn string // character_set_client and collation_connection
}

// Events reads all events that the account may see: those of schemas for which it has EVENT. Source: MySQL manual, "The INFORMATION_SCHEMA EVENTS Table"; MariaDB
// documentation, "Information Schema EVENTS Table".
func Events(ctx context.Context, c *Conn) ([]Event, error) {
	rows, err := c.Maps(ctx, `SELECT /* risso: which events are there? */ EVENT_SCHEMA AS s, EVENT_NAME AS n, DEFINER AS d, STATUS AS st, SQL_MODE AS m, TIME_ZONE AS z,
 CHARACTER_SET_CLIENT AS cs, COLLATION_CONNECTION AS co FROM information_schema.EVENTS ORDER BY EVENT_SCHEMA, EVENT_NAME`)
	if err != nil {
		return nil, fmt.Errorf("ask for the events: %w", err)
	}
	list := make([]Event, len(rows))
	for i, r := range rows {
		list[i] = Event{r["s"], r["n"], r["d"], r["st"], r["m"], r["z"], r["cs"], r["co"]}
	}
	return list, nil
}

// Quoted is its name as SQL has it.
func (e Event) Quoted() string { return Quote(e.Schema) + "." + Quote(e.Name) }

// Enabled reports whether it runs, where the scheduler does.
func (e Event) Enabled() bool { return e.Status == "ENABLED" }

// DisabledOnReplica reports whether a status of an event is the one that it gets when it is replicated: it came from the source, where it may be enabled or disabled.
// Source: MySQL manual, "Replication of Invoked Features" (REPLICA_SIDE_DISABLED since 8.2).
func DisabledOnReplica(status string) bool {
	return status == "SLAVESIDE_DISABLED" || status == "REPLICA_SIDE_DISABLED"
}

// Enable are the statements that let it run. ALTER EVENT takes over definer, sql_mode, time zone and character sets of the session, so that gets those of the event.
// Replicas keep it disabled. Source: MySQL manual, "ALTER EVENT Statement".
func (e Event) Enable() []string {
	return []string{
		fmt.Sprintf("SET SESSION /* risso: as the event has them */ sql_mode = %s, time_zone = %s, character_set_client = %s, collation_connection = %s",
			Literal(e.mode), Literal(e.zone), Literal(e.client), Literal(e.conn)),
		"ALTER /* risso: it is the primary that runs events */ DEFINER = " + QuoteAccount(e.Definer) + " EVENT " + e.Quoted() + " ENABLE",
	}
}

// SetScheduler lets a server run events, or none.
func SetScheduler(value string) string {
	return "SET GLOBAL /* risso: as the primary before */ event_scheduler = " + SettingText(value)
}
