package fleet

import (
	"fmt"
	"strconv"
	"strings"
)

// Version is a server's version as a number that compares: 80015 for 8.0.15, 101119 for 10.11.19, as both families write it in
// versioned comments. 0 is a version that is not known.
type Version int

// ParseVersion reads the first three numbers of a version as servers and their programs write it: 8.0.36-28.1, 5.7.mysql_aurora.2.11.2,
// 10.6.14-MariaDB-log, 8.0.33.R2. A MariaDB before 11 says 5.5.5- in front, for the sake of old replicas. What is missing counts as 0.
func ParseVersion(text string) Version {
	text = strings.TrimPrefix(text, "5.5.5-")
	var v Version
	more := true
	for range 3 {
		n := 0
		if more {
			end := strings.IndexFunc(text, func(r rune) bool { return r < '0' || r > '9' })
			if end < 0 {
				end = len(text)
			}
			n, _ = strconv.Atoi(text[:end]) // digits only; none are 0
			text, more = strings.CutPrefix(text[end:], ".")
		}
		v = v*100 + Version(min(n, 99))
	}
	return v
}

// Series is the first two numbers, within which the files of servers fit each other: 8.0, 10.11.
func (v Version) Series() string { return fmt.Sprintf("%d.%d", v/10000, v/100%100) }

// SameSeries reports whether the first two numbers are the same.
func (v Version) SameSeries(w Version) bool { return v/100 == w/100 }

// Server is which server something is about: what it is, and which one. Either may be unknown.
type Server struct {
	Flavour Flavour `json:"flavour"`
	Version string  `json:"version"` // as it calls itself
	Number  Version `json:"number"`  // the same, to compare
	Seat    `json:"-"`
}

// ServerOf reads what a server calls itself: VERSION(), and @@version_comment, which alone tells Percona Server from MySQL and may be "".
func ServerOf(version, comment string) Server {
	s := Server{Flavour: FlavourMySQL, Version: version, Number: ParseVersion(version)}
	switch {
	case strings.Contains(version, "MariaDB") || strings.Contains(comment, "MariaDB"):
		s.Flavour = FlavourMariaDB
	case strings.Contains(strings.ToLower(comment), "percona"):
		s.Flavour = FlavourPercona
	}
	return s
}

// String is the flavour and the version, for people.
func (s Server) String() string { return strings.TrimSpace(string(s.Flavour) + " " + s.Version) }

// MariaDB reports whether the server is a MariaDB.
func (s Server) MariaDB() bool { return s.Flavour == FlavourMariaDB }

// AtLeast reports whether the server has a version or a newer one: mysql of MySQL and Percona Server, mariadb of MariaDB. Never is for a
// family that never got there.
func (s Server) AtLeast(mysql, mariadb Version) bool {
	if s.MariaDB() {
		return s.Number >= mariadb
	}
	return s.Number >= mysql
}

// Never is newer than every version.
const Never Version = 1 << 30

// SameKind reports whether two servers read the same SQL and the same files, apart from their versions: MySQL and Percona Server do.
func (s Server) SameKind(o Server) bool { return s.MariaDB() == o.MariaDB() }

// Seat is which server it is, among all. Behind one address may be several, in turn, and one has several addresses; so it is what the
// server says of itself. It compares with ==.
type Seat struct {
	ID       string // server_uuid; of MariaDB, which has none, gtid_domain_id and server_id: two of them may share these
	Hostname string
	Port     int
	DataDir  string
}

// SeatOf reads a seat from the server's variables, by name; what they do not say stays empty.
func SeatOf(variable func(name string) string) Seat {
	s := Seat{ID: variable("server_uuid"), Hostname: variable("hostname"), DataDir: variable("datadir")}
	s.Port, _ = strconv.Atoi(variable("port"))
	if domain := variable("gtid_domain_id"); s.ID == "" && domain != "" {
		s.ID = domain + "-" + variable("server_id")
	}
	return s
}

// Place is where the server has its seat, without its ID: what journals and states of runs keep.
func (s Seat) Place() string { return fmt.Sprintf("%s:%d/%s", s.Hostname, s.Port, s.DataDir) }

// SamePlace reports whether two seats are one except for their IDs, of which either may not be known.
func (s Seat) SamePlace(o Seat) bool {
	s.ID = o.ID
	return s == o
}
