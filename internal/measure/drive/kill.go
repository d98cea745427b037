package drive

import (
	"errors"
	"fmt"
	"strconv"
)

// ID is the number that the server has for a session, by which another session of the same account can end it; 0: not known.
func ID(s Session) int64 {
	if n, ok := s.(interface{ id() int64 }); ok {
		return n.id()
	}
	return 0
}

// Kill has the server end sessions by their numbers, with what it does for them. One that is gone already, or may not be ended, is
// no error: it ends by itself.
func Kill(s Session, ids ...int64) error {
	for _, id := range ids {
		kill := "KILL /* risso: nobody waits for its answer */ " + strconv.FormatInt(id, 10)
		if s.Dialect() == Postgres {
			kill = fmt.Sprintf("SELECT /* risso: nobody waits for its answer */ pg_terminate_backend(%d)", id)
		}
		var server *ServerError
		if _, err := s.Exec(Other, kill); err != nil && !errors.As(err, &server) {
			return err
		}
	}
	return nil
}
