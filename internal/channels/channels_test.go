package channels

import (
	"testing"

	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
)

func TestCourseOf(t *testing.T) {
	for _, c := range []struct {
		backlog, gain, rate float64
		want                Course
		words               string
	}{
		{100, -0.5, 1, Course{CatchesUp, 200}, "it catches up in about 3 min"},
		{100, 0.5, 1, Course{Way: FallsBack}, "it is still falling behind"},
		{100, 0.04, 1, Course{}, "it neither catches up nor falls further behind"},
		{1 << 20, -1 << 10, 1 << 20, Course{}, "it neither catches up nor falls further behind"},
		{1 << 20, -1 << 18, 1 << 20, Course{CatchesUp, 4}, "it catches up in about 4 s"},
	} {
		if got := CourseOf(c.backlog, c.gain, c.rate); got != c.want || got.String() != c.words {
			t.Errorf("%g, %g of %g: got %+v, %q, want %+v, %q", c.backlog, c.gain, c.rate, got, got.String(), c.want, c.words)
		}
	}
}

func TestMoreAppliers(t *testing.T) {
	mysql9, maria := mysql.Of(fleet.ServerOf("9.7.0", "")), mysql.Of(fleet.ServerOf("10.11.6-MariaDB", ""))
	for _, c := range []struct {
		server      mysql.Server
		name, value string
		want        string
	}{
		{mysql9, "replica_parallel_workers", "1", "STOP REPLICA SQL_THREAD; SET GLOBAL replica_parallel_workers = 4; START REPLICA SQL_THREAD"},
		{mysql9, "slave_parallel_workers", "0", "STOP SLAVE SQL_THREAD; SET GLOBAL slave_parallel_workers = 4; START SLAVE SQL_THREAD"},
		{maria, "slave_parallel_threads", "0", "STOP SLAVE SQL_THREAD; SET GLOBAL slave_parallel_threads = 4; START SLAVE SQL_THREAD"},
		{maria, "slave_parallel_threads", "8", ""}, {maria, "other", "0", ""},
	} {
		got := MoreAppliers(c.server, func(name string) string {
			if name == c.name {
				return c.value
			}
			return ""
		})
		if got != c.want {
			t.Errorf("%s = %s: got %q, want %q", c.name, c.value, got, c.want)
		}
	}
}
