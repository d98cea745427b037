# shellcheck shell=bash
# Which packages script/test tests without the race detector, and why. All others are tested with it.

# They drive a program that was built before, without the detector as users have it, and look at it from outside.
# shellcheck disable=SC2034 # read by script/test
outside=(./tests/scenario ./tests/page)
# Rooms that start no goroutine and guard nothing against one: TestPlainRooms holds that. What they call of rooms that do is tested with
# the detector there. Two by name, because their tests start goroutines, to wait for servers; and all whose tests start none either.
plain=(./internal/explain/plan ./internal)
while read -r room; do
  plain+=("./$room")
done < <(comm -23 <(git ls-files 'internal/*/*_test.go' | xargs -n 1 dirname | sort -u) \
  <(git grep -lE '^\s*go (func|[A-Za-z_.]+\()|"sync(/atomic)?"|golang.org/x/sync|\.AfterFunc\(' -- 'internal/*/*.go' | xargs -n 1 dirname | sort -u))

# Of the others, those that take longest, which begin first.
# shellcheck disable=SC2034 # read by script/test
longest=(
  ./internal/face/cli ./internal/watch/live ./internal/data/load ./internal/avail/failover/carry ./internal/face/cli/... ./internal/explain/history ./internal/explain/digest ./internal/data/dump
  ./internal/data/checksum ./internal/data/... ./internal/explain/... ./internal/serve/... ./internal/mysql/... ./internal/sandbox
)

# What they measure is time itself, to milliseconds, and they wait for most of theirs: beside the others they are starved of processors, and
# see stalls that are not those of a server. They run after them, alone.
# shellcheck disable=SC2034 # read by script/test
timed=(./internal/measure/bench)
