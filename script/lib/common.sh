# shellcheck shell=bash
# Helpers of the scripts: words on the terminal, packages, a report at the end. The script that sources this must
# set `here` to the folder script/.
: "${here:?}"

# Where things that no package manager keeps are put.
# shellcheck disable=SC2034 # for scripts that source this
cache=${XDG_CACHE_HOME:-$HOME/.cache}/risso
failed=0
report=()
apt_updated=
policy=/usr/sbin/policy-rc.d
policy_made=

say() { printf '· %s\n' "$*" >&2; }
have() { command -v "$1" >/dev/null 2>&1; }

# note NAME STATE DETAIL: a line of the table at the end. STATE is ok, missing (a warning) or
# failed (the exit status will be 1).
note() {
  report+=("$1"$'\t'"$2"$'\t'"$3")
  if [ "$2" = failed ]; then failed=1; fi
}

# retry COMMAND…: three times, with a pause between. It shows its progress; the output is shown only when all fail.
retry() {
  local try log status=1
  log=$(mktemp) || return 1
  for try in 1 2 3; do
    if watched "$log" "$@"; then status=0; break; fi
    [ "$try" = 3 ] || sleep $((try * 3))
  done
  [ $status = 0 ] || apt_words "$log" | tail -n 5 >&2
  rm -f "$log"
  return $status
}

# watched LOG COMMAND…: runs a command with all that it says in LOG. What takes long shows its progress: in one line that is
# renewed each second on a terminal, else in a line each 15 seconds. The variable `doing` names it, the function that `far`
# names makes a few words of LOG.
watched() {
  local log=$1 status pid
  shift
  tell_progress "$log" "${doing:-$1}" "${far:-far_apt}" &
  pid=$!
  "$@" >"$log" 2>&1
  status=$?
  kill "$pid" 2>/dev/null
  wait "$pid" 2>/dev/null
  [ ! -t 2 ] || printf '\r\e[K' >&2
  return $status
}

# tell_progress LOG NAME WORDS goes on until it is ended, or the script has ended.
tell_progress() {
  local log=$1 name=$2 words=$3 began=$SECONDS passed pause
  trap 'kill "$pause" 2>/dev/null; exit' TERM
  while kill -0 $$ 2>/dev/null; do
    sleep 1 &
    pause=$!
    wait "$pause"
    passed=$((SECONDS - began))
    if [ -t 2 ]; then
      printf '\r\e[K· %s: %s%s s' "$name" "$("$words" "$log")" "$passed" >&2
    elif [ $((passed % 15)) = 0 ]; then
      say "$name: $("$words" "$log")$passed s"
    fi
  done
}

# far_apt LOG: what apt's last line of status says, such as 31 %.
far_apt() { tail -c 2000 "$1" | awk -F: '/^(dl|pm)status:/ {n = int($3); w = $1 == "dlstatus" ? "fetched" : "installed"} END {if (w) printf "%d %% %s, ", n, w}'; }

# apt_words LOG: what apt and others say, without the lines of status.
apt_words() { grep -vE '^(dl|pm)(status|conffile):' "$1"; }

# as_root COMMAND…: with sudo if that needs no password.
as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

# apt_install PACKAGE WHAT: installs PACKAGE unless WHAT (a command or a file) is there.
apt_install() {
  local package=$1 what=$2
  local doing="installing $package"
  case $what in
    /*) [ -e "$what" ] && return 0 ;;
    *) if have "$what" || [ -x "/usr/sbin/$what" ]; then return 0; fi ;;
  esac
  have apt-get || { say "$package: no apt-get here, install it with your package manager"; return 1; }
  if [ -z "$apt_updated" ]; then
    doing="apt-get update" retry as_root apt-get update -qq || say "apt-get update failed; going on with the old lists"
    apt_updated=1
  fi
  apt-cache show "$package" >/dev/null 2>&1 || { say "$package: not known to apt"; return 1; }
  say "installing $package"
  no_services
  retry as_root env DEBIAN_FRONTEND=noninteractive apt-get -o APT::Status-Fd=1 install -y -qq --no-install-recommends "$package"
}

# no_services keeps a freshly installed server package from starting a service that was not asked for,
# until the script ends, however it ends.
no_services() {
  if [ -n "$policy_made" ] || [ -e $policy ]; then return; fi
  policy_made=1
  trap 'as_root rm -f $policy' EXIT
  trap 'exit 130' INT TERM HUP
  printf '#!/bin/sh\nexit 101\n' | as_root tee $policy >/dev/null && as_root chmod 755 $policy
}

# library PACKAGE… : the first of the packages that apt knows is installed, unless one is there.
library() {
  local p
  for p in "$@"; do
    if dpkg-query -W -f '${Status}' "$p" 2>/dev/null | grep -q ' installed$'; then return 0; fi
  done
  for p in "$@"; do
    if apt_install "$p" "/nonexistent/$p" 2>/dev/null; then return 0; fi
  done
  say "none of these libraries can be installed: $*"
  return 1
}

# report_command COMMAND NAME USE: its line in the table.
report_command() {
  local path
  if path=$(command -v "$1"); then
    note "$2" ok "$path"
  else
    note "$2" missing "$1 is not here; it is for $3"
  fi
}

# go_tool NAME PACKAGE VERSION [FLAG…]: builds a Go program into the cache, unless that version is there.
go_tool() {
  local name=$1 package=$2 version=$3 bin=$cache/bin
  shift 3
  if go version -m "$bin/$name" 2>/dev/null | grep -qP "^\tmod\t\S+\t\Q$version\E\t"; then return 0; fi
  say "building $name $version"
  mkdir -p "$bin" || return 1
  GOBIN=$bin GOFLAGS='' doing="building $name" retry go install "$@" "$package@$version"
}

# page_packages installs what ui/package-lock.json names, once per state of that file.
page_packages() {
  local ui stamp sum
  ui=$(cd "$here/.." && pwd)/ui
  [ -e "$ui/package-lock.json" ] || return 0
  if ! have npm; then
    note "page packages" missing "npm is not here"
    return 1
  fi
  stamp=$ui/node_modules/.risso-setup
  sum=$(sha256sum <"$ui/package-lock.json")
  if [ ! -e "$stamp" ] || [ "$(cat "$stamp")" != "$sum" ]; then
    say "npm ci"
    # The browser for the page's tests comes from a package, not from a download.
    if ! (cd "$ui" && PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1 doing="npm ci" retry npm ci --no-audit --no-fund --loglevel=error); then
      note "page packages" failed "npm ci failed in ui/"
      return 1
    fi
    printf '%s\n' "$sum" >"$stamp"
  fi
  note "page packages" ok "ui/node_modules"
}

# print_report shows the table and ends the script.
print_report() {
  local line name state detail
  printf '\n'
  for line in "${report[@]}"; do
    IFS=$'\t' read -r name state detail <<<"$line"
    printf '%-28s %-8s %s\n' "$name" "$state" "$detail"
  done
  exit "$failed"
}

# build_risso BINARY: with a line about how far it is. With cgo statements are kept in the data folder; without a C compiler the
# page says that they are not.
build_risso() {
  local log packages doing="fetching Go modules" far=far_modules
  if have gcc && have g++; then export CGO_ENABLED=1; else export CGO_ENABLED=0; fi
  log=$(mktemp) || return 1
  # Stale are the packages that are not in Go's cache yet.
  if watched "$log" go list -deps -f '{{if .Stale}}stale{{end}}' ./cmd/risso; then
    packages=$(grep -cx stale "$log")
    doing="building risso" far=far_build
    watched "$log" go build -v -o "$1" ./cmd/risso && rm -f "$log" && return
  fi
  tail -n 20 "$log" >&2
  rm -f "$log"
  return 1
}

far_modules() { awk '/^go: downloading/ {n++} END {if (n) printf "%d modules, ", n}' "$1"; }

# far_build LOG: go build -v names each package that it begins; linking comes last and is not named.
far_build() { awk -v all="$packages" '!/^go: / {n++} END {printf "%d of %d packages%s, ", n, all, (n >= all ? ", linking" : "")}' "$1"; }
