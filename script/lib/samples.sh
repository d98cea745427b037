# shellcheck shell=bash
# Published schemas that tests load, back up, restore and compare: sakila, and the cities of world, as percona-toolkit's own tests
# have them. They come with its source package and are not part of this project.

# published_samples puts a folder for each schema under the cache, with the files that a client loads.
published_samples() {
  local dir=${cache:?}/samples half=$cache/.samples.half tree options
  local doing="fetching published samples"
  if ! [ -e "$dir/sakila" ]; then
    say "$doing (27 MB)"
    rm -rf "$half"
    mkdir -p "$half"/{lists/partial,archives/partial,tree,samples/sakila,samples/world} || return 1
    : >"$half/status"
    if [ -e /etc/apt/sources.list.d/debian.sources ]; then
      awk '/^Types:/ {print "Types: deb-src"; next} /^Suites:/ {print $1, $2; next} /^$/ {exit} {print}' /etc/apt/sources.list.d/debian.sources >"$half/src.sources"
    else
      grep -sm1 '^deb ' /etc/apt/sources.list | sed 's/^deb /deb-src /' >"$half/src.list"
    fi
    options=(
      -o "Dir::Etc::sourcelist=$(echo "$half"/src.*)" -o Dir::Etc::sourceparts=/dev/null
      -o "Dir::State::lists=$half/lists" -o "Dir::State::status=$half/status" -o "Dir::Cache::archives=$half/archives"
      -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= -o APT::Sandbox::User=root -o Acquire::Languages=none
      -o APT::Status-Fd=1 -o Debug::NoLocking=true -o APT::Update::Post-Invoke=
    )
    tree=$half/tree
    # shellcheck disable=SC2016 # the words of the inner shell
    if ! retry apt-get "${options[@]}" update -qq ||
      ! retry sh -c 'cd "$1" && shift && apt-get -qq "$@"' - "$half" "${options[@]}" source --download-only --tar-only percona-toolkit ||
      ! tar -xf "$(echo "$half"/percona-toolkit_*.orig.tar.*)" -C "$tree" --strip-components=1 ||
      ! cp "$tree"/sandbox/sakila-db/sakila-schema.sql "$half/samples/sakila/1-schema.sql" ||
      ! cp "$tree"/sandbox/sakila-db/sakila-data.sql "$half/samples/sakila/2-data.sql" ||
      ! cp "$tree"/t/lib/samples/char-chunking/world-city.sql "$half/samples/world/city.sql"; then
      rm -rf "$half"
      note "published samples" missing "could not be fetched; they are for a test of round trips"
      return 1
    fi
    rm -rf "$dir" && mv "$half/samples" "$dir" && rm -rf "$half"
  fi
  note "published samples" ok "sakila and world's cities, $dir"
}
