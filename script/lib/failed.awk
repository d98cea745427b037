# What failed in a log of `go test -v`, each test once with the last that it said, and, as the last line, their names: those who keep a
# long log often keep no more than its end.
function fails(what, who) {
  if (what SUBSEP who in seen) return
  seen[what, who]
  failed[++n] = what
  name_of[n] = who
}
function add(name) {
  names = names (names ? ", " : "") name " of " room
}
/^=== (RUN|NAME|CONT) / { name = $3 }
/^ +[a-z_0-9]+\.go:[0-9]+: / { words[name, ++said[name]] = substr($0, 1, 400) }
/^ *--- FAIL: / { fails($0, $3) }
/^panic: / { fails($0, name) }
/DATA RACE/ { fails("DATA RACE", name) }
/^(ok|FAIL) *\t/ {
  room = $2
  sub(".*/risso/", "", room)
  if ($1 == "FAIL" && !n) add("no test")
  for (i = 1; i <= n; i++) {
    who = name_of[i]
    print "    " failed[i] " of " room
    for (k = said[who] > 4 ? said[who] - 3 : 1; k <= said[who]; k++) print "        " words[who, k]
    if (who !~ "/") add(failed[i] ~ "--- FAIL" ? who : failed[i] " in " who)
  }
  n = 0
  delete said
  delete seen
}
END { print "Failed: " names }
