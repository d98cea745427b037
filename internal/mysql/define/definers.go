package define

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"

	"github.com/rissodb/risso/internal/mysql"
)

// Definers counts views, routines, triggers and events by the account, user@host, that they run as. Each schema that has some is asked for by itself:
// a server without a dictionary opens every table to list them all at once.
func Definers(ctx context.Context, s *mysql.Stream, server mysql.Server) (map[string]int, error) {
	counts := map[string]int{}
	count := func(row [][]byte) error { counts[string(row[0])]++; return nil }
	for _, table := range []string{"ROUTINES", "EVENTS"} {
		if err := s.Query(ctx, "SELECT /* risso: accounts */ DEFINER FROM information_schema."+table, count); err != nil {
			return nil, fmt.Errorf("list definers: %w", err)
		}
	}
	views, err := ViewSchemas(ctx, s, server)
	if err != nil {
		return nil, err
	}
	for _, schema := range views {
		if err := s.Query(ctx, "SELECT /* risso: accounts */ DEFINER FROM information_schema.VIEWS WHERE TABLE_SCHEMA = "+mysql.Literal(schema), count); err != nil {
			return nil, fmt.Errorf("list definers of views: %w", err)
		}
	}
	held, err := Holds(ctx, s)
	if err != nil {
		return nil, err
	}
	for schema, kinds := range held {
		if !slices.Contains(kinds, KindTrigger) {
			continue
		}
		if err := s.Query(ctx, "SELECT /* risso: accounts */ DEFINER FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = "+mysql.Literal(schema), count); err != nil {
			return nil, fmt.Errorf("list definers of triggers: %w", err)
		}
	}
	return counts, nil
}

// ViewSchemas are the schemas that have views. Where a server reads a file to tell a view from a table, what is a table is asked of InnoDB, and they may
// be some more: those that have tables of other engines.
func ViewSchemas(ctx context.Context, s *mysql.Stream, server mysql.Server) (schemas []string, err error) {
	add := func(schema []byte) {
		if name := string(schema); len(schemas) == 0 || schemas[len(schemas)-1] != name {
			schemas = append(schemas, name)
		}
	}
	var tables []uint64
	seed := maphash.MakeSeed()
	key := func(row [][]byte) uint64 { return maphash.String(seed, string(row[0])+"\x00"+string(row[1])) }
	statement := server.InnoDBTables()
	if statement != "" {
		err = s.Query(ctx, statement, func(row [][]byte) error { tables = append(tables, key(row)); return nil })
		if err != nil && (s.Broken() != nil || ctx.Err() != nil) {
			return nil, errors.Join(fmt.Errorf("look for views: %w", err), ctx.Err())
		}
	}
	if statement == "" || err != nil { // the account may not ask InnoDB
		err = s.Query(ctx, "SELECT /* risso: views */ DISTINCT TABLE_SCHEMA FROM information_schema.TABLES WHERE TABLE_TYPE = 'VIEW'", func(row [][]byte) error { add(row[0]); return nil })
	} else {
		slices.Sort(tables)
		err = s.Query(ctx, "SELECT /* risso: names of tables and views */ TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES", func(row [][]byte) error {
			if _, ok := slices.BinarySearch(tables, key(row)); !ok {
				add(row[0])
			}
			return nil
		})
	}
	slices.Sort(schemas)
	schemas = slices.Compact(schemas)
	if err != nil {
		return nil, fmt.Errorf("look for views: %w", err)
	}
	return slices.DeleteFunc(schemas, func(name string) bool { return name == "information_schema" || name == "performance_schema" }), nil
}
