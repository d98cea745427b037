package upgrade

import (
	"strings"

	"github.com/rissodb/risso/internal/fleet"
)

// reservedSince are words that became reserved, and when. Sources: MySQL manual, "Keywords and Reserved Words", its lists of new ones in 8.0,
// 8.4 and 9.x; MariaDB documentation, "Reserved Words". TestReserved of package trial holds them against MySQL 5.7, 8.0 and 9.7 and MariaDB
// 10.11 and 11.8; between these it is the manuals that say when a word came or went.
var reservedSince = []struct {
	mysql, mariadb fleet.Version
	words          string
	until          fleet.Version // MySQL takes it for a name again; 0: it does not
}{
	{80000, fleet.Never, "cube cume_dist dense_rank empty except first_value function grouping groups json_table lag last_value lead nth_value ntile of over percent_rank rank recursive row row_number rows system window", 0},
	{80000, fleet.Never, "persist persist_only", 80016},
	{80014, fleet.Never, "lateral", 0},
	{80031, fleet.Never, "intersect", 0},
	{80400, fleet.Never, "qualify tablesample", 0},
	{80400, fleet.Never, "manual parallel", 90700},
	{90200, fleet.Never, "library", 0},
	{90000, fleet.Never, "external", 0},
	{fleet.Never, 100203, "over recursive rows window", 0},
	{fleet.Never, 100300, "except intersect", 0},
	{fleet.Never, 100700, "row_number", 0},
	{fleet.Never, 110300, "sql_after_gtids sql_before_gtids", 0},
	{fleet.Never, 110700, "vector", 0},
}

// Reserved reports whether a word is reserved on a server, as far as it became so since MySQL 5.7 and MariaDB 10.0.
func Reserved(word string, s fleet.Server) bool {
	for _, r := range reservedSince {
		if s.AtLeast(r.mysql, r.mariadb) && (r.until == 0 || !s.AtLeast(r.until, fleet.Never)) && containsWord(r.words, strings.ToLower(word)) {
			return true
		}
	}
	return false
}

func containsWord(list, word string) bool {
	return word != "" && strings.Contains(" "+list+" ", " "+word+" ")
}

// newlyReserved reports whether a name has to be quoted on the new server, and did not have to on the old one.
func (r *rules) newlyReserved(name string) bool {
	return Reserved(name, r.to) && !Reserved(name, r.d.Server)
}
