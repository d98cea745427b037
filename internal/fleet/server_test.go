package fleet_test

import (
	"testing"

	"github.com/rissodb/risso/internal/fleet"
)

func TestFlavourAndVersion(t *testing.T) {
	for _, c := range []struct {
		version, comment string
		flavour          fleet.Flavour
		number           fleet.Version
	}{
		{"10.11.19-MariaDB-0+deb12u1-log", "Debian 12", fleet.FlavourMariaDB, 101119},
		{"5.5.5-10.6.4-MariaDB", "", fleet.FlavourMariaDB, 100604},
		{"8.0.15", "MySQL Community Server - GPL", fleet.FlavourMySQL, 80015},
		{"8.0.36-28", "Percona Server (GPL), Release 28", fleet.FlavourPercona, 80036},
		{"9.7.0", "(Debian)", fleet.FlavourMySQL, 90700},
		{"5.7.22-log", "MySQL Community Server (GPL)", fleet.FlavourMySQL, 50722},
		{"5.7.mysql_aurora.2.11.2", "MySQL Community Server (GPL)", fleet.FlavourMySQL, 50700},
		{"8.0.mysql_aurora.3.04.0", "Source distribution", fleet.FlavourMySQL, 80000},
		{"8.0.33.R2", "", fleet.FlavourMySQL, 80033},
		{"10.6.14-MariaDB-log", "managed by https://aws.amazon.com/rds/", fleet.FlavourMariaDB, 100614},
		{"10.6.14-log", "MariaDB Server", fleet.FlavourMariaDB, 100614},
		{"8.4", "", fleet.FlavourMySQL, 80400},
		{"", "", fleet.FlavourMySQL, 0},
	} {
		got := fleet.ServerOf(c.version, c.comment)
		if got.Flavour != c.flavour || got.Number != c.number || got.Version != c.version {
			t.Errorf("%q: got %s %d of %q, want %s %d", c.version, got.Flavour, got.Number, got.Version, c.flavour, c.number)
		}
	}
}

func TestAtLeast(t *testing.T) {
	my, maria := fleet.ServerOf("8.0.15", ""), fleet.ServerOf("5.5.5-10.11.19-MariaDB", "")
	for _, c := range []struct {
		server         fleet.Server
		mysql, mariadb fleet.Version
		want           bool
	}{
		{my, 80015, fleet.Never, true}, {my, 80016, 0, false}, {my, fleet.Never, 0, false}, {fleet.Server{}, 50100, 0, false},
		{maria, fleet.Never, 101119, true}, {maria, 0, 101120, false}, {maria, 0, fleet.Never, false},
	} {
		if got := c.server.AtLeast(c.mysql, c.mariadb); got != c.want {
			t.Errorf("%s at least %d, %d: got %v, want %v", c.server, c.mysql, c.mariadb, got, c.want)
		}
	}
	if got := my.Number.Series() + " " + maria.Number.Series(); got != "8.0 10.11" {
		t.Errorf("series: got %s, want 8.0 10.11", got)
	}
	for _, c := range []struct {
		a, b fleet.Version
		want bool
	}{{80015, 80099, true}, {80015, 80100, false}, {101119, 101100, true}, {100611, 101111, false}} {
		if got := c.a.SameSeries(c.b); got != c.want {
			t.Errorf("%d and %d of one series: got %v, want %v", c.a, c.b, got, c.want)
		}
	}
	percona := fleet.ServerOf("8.0.36-28", "Percona Server (GPL)")
	if !my.SameKind(percona) || my.SameKind(maria) || !maria.SameKind(maria) {
		t.Error("MySQL and Percona Server are of one kind, MariaDB is of another")
	}
	if got := percona.String(); got != "Percona Server 8.0.36-28" {
		t.Errorf("as text: got %q, want \"Percona Server 8.0.36-28\"", got)
	}
}

func TestSeat(t *testing.T) {
	variables := map[string]string{"hostname": "db1", "port": "3306", "datadir": "/data/", "gtid_domain_id": "7", "server_id": "12"}
	of := func(name string) string { return variables[name] }
	maria := fleet.SeatOf(of)
	if want := (fleet.Seat{ID: "7-12", Hostname: "db1", Port: 3306, DataDir: "/data/"}); maria != want {
		t.Errorf("MariaDB: got %+v, want %+v", maria, want)
	}
	if got := maria.Place(); got != "db1:3306//data/" {
		t.Errorf("place: got %q, want that of states that older versions kept", got)
	}
	variables["server_uuid"] = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
	my := fleet.SeatOf(of)
	if my.ID != variables["server_uuid"] {
		t.Errorf("MySQL: got %q, want variables[\"server_uuid\"]", my.ID)
	}
	if !my.SamePlace(fleet.Seat{Hostname: "db1", Port: 3306, DataDir: "/data/"}) || my.SamePlace(fleet.Seat{ID: my.ID, Hostname: "db2", Port: 3306, DataDir: "/data/"}) {
		t.Error("the same place goes by host name, port and data directory alone")
	}
	if got := fleet.SeatOf(func(string) string { return "" }); got != (fleet.Seat{}) {
		t.Errorf("of nothing: got %+v, want fleet.Seat{}", got)
	}
}
