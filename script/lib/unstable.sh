# shellcheck shell=bash
# Packages of Debian's unstable suite, next to the system and not in it. apt gets its own lists and state, so that it takes
# nothing on the host for granted and changes nothing there.

unstable=${cache:?}/apt-sid
unstable_options=()

# unstable_apt reads the lists of the suite, once a run.
unstable_apt() {
  local apt=$unstable sources=/etc/apt/sources.list.d/debian.sources list
  [ ${#unstable_options[@]} = 0 ] || return 0
  if ! have apt-get || ! have dpkg-deb; then
    say "no apt-get or dpkg-deb here"
    return 1
  fi
  mkdir -p "$apt/lists/partial" "$apt/archives/partial" || return 1
  # Dependencies that nothing here runs: to apt they are installed, so it does not fetch them.
  printf 'Package: %s\nStatus: install ok installed\nVersion: 9:9\nArchitecture: '"$(dpkg --print-architecture)"'\nMulti-Arch: allowed\nMaintainer: none\nDescription: not needed\n\n' \
    perl systemd debconf passwd procps psmisc lsof gawk libdbi-perl >"$apt/status"
  if [ -e $sources ]; then
    # The mirror that this machine uses anyway, with another suite.
    list=$apt/sid.sources
    awk '/^Suites:/ {print "Suites: sid"; next} /^$/ {exit} {print}' $sources >"$list"
  elif grep -qs '^deb ' /etc/apt/sources.list; then
    list=$apt/sid.list
    awk '$1 == "deb" {i = ($2 ~ /^\[/) ? 3 : 2; while ($(i) ~ /\]$/) i++; print "deb", $(i), "sid main"; exit}' /etc/apt/sources.list >"$list"
  else
    say "no Debian mirror is configured"
    return 1
  fi
  unstable_options=(
    -o "Dir::Etc::sourcelist=$list" -o Dir::Etc::sourceparts=/dev/null
    -o "Dir::State::lists=$apt/lists" -o "Dir::State::status=$apt/status"
    -o "Dir::Cache::archives=$apt/archives" -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache=
    -o APT::Sandbox::User=root -o Acquire::Languages=none -o APT::Keep-Downloaded-Packages=true
    -o APT::Status-Fd=1 -o DPkg::Pre-Install-Pkgs= -o DPkg::Post-Invoke= -o APT::Update::Post-Invoke= -o "Debug::NoLocking=true"
  )
  retry apt-get "${unstable_options[@]}" update -qq || { unstable_options=(); return 1; }
}

# debian_unstable DIR PACKAGE…: unpacks packages, and what they need, to DIR/tree.
debian_unstable() {
  local dir=$1 deb
  shift
  unstable_apt || return 1
  rm -rf "$unstable/archives"
  mkdir -p "$unstable/archives/partial" || return 1
  retry apt-get "${unstable_options[@]}" -y -d -qq --no-install-recommends install "$@" || return 1
  for deb in "$unstable"/archives/*.deb; do
    dpkg-deb -x "$deb" "$dir/tree" || return 1
  done
  rm -rf "$unstable/archives" # the packages are unpacked
}

# forget_unstable removes the lists, of some 30 MB, when nothing more is fetched.
forget_unstable() { rm -rf "${unstable:?}"; }

# wrap_tree DIR: programs in DIR/bin that run those in DIR/tree with their own loader. They exec, so that the process is the
# program itself. What belongs to a server is next to them, where programs of a basedir look for it.
wrap_tree() {
  local dir=$1 program name places share base machine
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
    base="\$tree/usr"
    # MariaDB runs what copies a node of Galera from the folder bin of its basedir: that has to be these.
    if [ "$name" = mariadbd ]; then
      share=mariadb
      base="\$tree/.."
    fi
    case $name in
      mysqld | mariadbd)
        # Last, because --defaults-file must be the first argument. The packages compiled in paths of
        # the system. They do not exist here, so the server is given their places.
        places="--basedir=\"$base\" --lc-messages-dir=\"\$tree/usr/share/$share\" --character-sets-dir=\"\$tree/usr/share/$share/charsets\" --plugin-dir=\"\$tree/usr/lib/mysql/plugin\""
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

# newest_peers PACKAGE…: the newest of what script/bench compares with, in the folder bin under the cache's peers; script/bench
# takes programs from there first. They run with the system's own libraries: only they themselves are fetched.
newest_peers() {
  local dir=$cache/peers half=$cache/.peers.half deb
  local doing="fetching $*"
  if ! [ -e "$dir/versions" ]; then
    say "$doing (118 MB)"
    unstable_apt || return 1
    rm -rf "$half" && mkdir -p "$half/tree" || return 1
    # shellcheck disable=SC2016 # the words of the inner shell
    if ! retry sh -c 'cd "$1" && shift && apt-get -qq "$@"' - "$half" "${unstable_options[@]}" download "$@"; then
      rm -rf "$half"
      return 1
    fi
    for deb in "$half"/*.deb; do
      dpkg-deb -x "$deb" "$half/tree" || return 1
      # shellcheck disable=SC2016 # dpkg's own
      dpkg-deb -W --showformat '${Package} ${Version}\n' "$deb" >>"$half/versions"
    done
    rm -f "$half"/*.deb
    ln -s tree/usr/bin "$half/bin"
    rm -rf "$dir" && mv "$half" "$dir"
  fi
  note "newest peers" ok "$(paste -sd , "$dir/versions" | sed 's/,/, /g'), in $dir"
}
