# shellcheck shell=bash
# Which packages script/test tests without the race detector, and why. All others are tested with it.

# shellcheck disable=SC2034 # read by script/test
plain=(
  # They drive a program that was built before, without the detector as users have it, and look at it from outside.
  ./tests/page ./tests/scenario
  # Rooms whose code starts no goroutine and guards nothing against one: TestPlainRooms holds that. What they call of rooms that
  # do is tested with the detector there.
  ./internal ./internal/binlogevent ./internal/data/chunk ./internal/data/schedule ./internal/data/verdict ./internal/digits
  ./internal/explain/prepared ./internal/explain/trace ./internal/face/render ./internal/change
  ./internal/lack ./internal/measure/report ./internal/measure/rivals ./internal/measure/stats ./internal/measure/workload/draw
  ./internal/sqltext ./internal/store/aside ./internal/watch/rules
)

# Of the others, those that take longest, which begin first.
# shellcheck disable=SC2034
longest=(./internal/face/cli ./internal/watch/live ./internal/data/... ./internal/explain/... ./internal/mysql ./internal/sandbox)
