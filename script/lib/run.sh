# shellcheck shell=bash
# Commands that end with their script, together with all that they have started: a server that runs in its own session
# (a sandbox) does not hear Ctrl-C, and has no parent when the test that started it is gone.
#
#   . script/lib/run.sh
#   run COMMAND…

# The mark is in the environment of every process that is started from here: it identifies them, and no other is ended.
export RISSO_TEST_RUN="$$-$RANDOM-$EPOCHREALTIME"
runs=

# run COMMAND… waits for a command that reads nothing, and receives signals meanwhile. It has its own process group: jobs
# of a script would otherwise ignore Ctrl-C, and so would all that they start.
run() {
  local status
  set -m
  "$@" </dev/null &
  runs=$!
  set +m
  wait "$runs"
  status=$?
  runs=
  return $status
}

# marked lists the processes that were started from here and still run.
marked() {
  grep -lzxF "RISSO_TEST_RUN=$RISSO_TEST_RUN" /proc/[0-9]*/environ 2>/dev/null | cut -d / -f 3
}

# end_runs ends them, and removes the folders of tests in which servers of them ran.
end_runs() {
  local try pid dir found top=${TMPDIR:-/tmp} dirs=()
  top=${top%/}
  trap '' INT TERM HUP
  [ -z "$runs" ] || kill -KILL -- "-$runs" 2>/dev/null # its subshell has no mark
  for try in {1..100}; do # what was about to start something may have done so
    found=
    for pid in $(marked); do
      dir=$(readlink "/proc/$pid/cwd") || continue
      case $dir in
        "$top"/r[st]-*) dir=${dir#"$top"/}; dirs+=("$top/${dir%%/*}") ;;
      esac
      kill -KILL "$pid" 2>/dev/null && found=1
    done
    [ -n "$found" ] || break
    [ "$try" -lt 3 ] || sleep 0.1
  done
  [ ${#dirs[@]} -eq 0 ] || rm -rf "${dirs[@]}"
}

trap 'exit 130' INT
trap 'exit 143' TERM
trap 'exit 129' HUP
