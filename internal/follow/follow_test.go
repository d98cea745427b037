package follow

import "testing"

// TestSource: a server's UUID says more than an address, which may be another's by now; a server_id says least, as copies share it.
func TestSource(t *testing.T) {
	a := Server{UUID: "ua", ID: "1", Hostname: "x", Port: 3306, Addresses: []string{"db1:3306"}}
	b := Server{UUID: "ub", ID: "2", Hostname: "y.example", Port: 3306, Addresses: []string{"db2:3306"}}
	r := Server{ID: "9", Hostname: "x", Addresses: []string{"db3:3306"}}
	named := Server{Addresses: []string{"10.0.0.7:3306"}, Reported: "node7:3306"}
	twin := Server{UUID: "ua", ID: "1", Hostname: "z", Port: 3306, Addresses: []string{"db9:3306"}}
	maria := Server{NoUUID: true, ID: "5", Hostname: "m", Port: 3307, Addresses: []string{"/run/m.sock"}}
	copied := Server{NoUUID: true, ID: "5", Hostname: "n", Port: 3307, Addresses: []string{"[fd00::7]:3307"}}
	for _, c := range []struct {
		name    string
		servers []Server
		ch      Channel
		want    int
	}{
		{"by UUID", []Server{r, a, b}, Channel{Source: "vip:3306", SourceUUID: "UB"}, 2},
		{"the address is another's now", []Server{r, a, b}, Channel{Source: "db1:3306", SourceUUID: "uc"}, -1},
		{"the address is another's now, by server_id", []Server{r, maria}, Channel{Source: "m:3307", SourceID: "6"}, -1},
		{"by address", []Server{r, a, b}, Channel{Source: "DB1:3306", SourceID: "0"}, 1},
		{"by the host's name without its domain", []Server{r, a, b}, Channel{Source: "y:3306"}, 2},
		{"by the name it reports", []Server{r, a, named}, Channel{Source: "node7:3306"}, 2},
		{"two with one UUID, by address", []Server{r, a, twin}, Channel{Source: "db9:3306", SourceUUID: "ua"}, 2},
		{"two with one UUID, address unknown", []Server{r, a, twin}, Channel{Source: "vip:3306", SourceUUID: "ua"}, -1},
		{"by server_id and port, behind another address", []Server{r, a, maria}, Channel{Source: "proxy:3307", SourceID: "5"}, 2},
		{"by server_id, another port", []Server{r, a, maria}, Channel{Source: "proxy:3399", SourceID: "5"}, -1},
		{"by server_id and port, where another one is at its address, or nobody", []Server{r, a, maria}, Channel{Source: "proxy:3307", SourceID: "5", Elsewhere: true}, -1},
		{"by a server_id that nobody set", []Server{r, {NoUUID: true, ID: "1", Port: 3306}}, Channel{Source: "proxy:3306", SourceID: "1"}, -1},
		{"two with one server_id, by address", []Server{r, maria, copied}, Channel{Source: "[FD00::7]:3307", SourceID: "5"}, 2},
		{"two with one server_id", []Server{r, maria, copied}, Channel{Source: "proxy:3307", SourceID: "5"}, -1},
		{"its own machine", []Server{r, a, b}, Channel{Source: "127.0.0.1:3306"}, 1},
		{"its own machine, IPv6", []Server{r, b, a}, Channel{Source: "[::1]:3306"}, 2},
		{"another's machine", []Server{r, b}, Channel{Source: "localhost:3306"}, -1},
		{"another port", []Server{r, a, b}, Channel{Source: "db1:3307"}, -1},
		{"no database server", []Server{r, {Other: true, Addresses: []string{"db1:3306"}}}, Channel{Source: "db1:3306"}, -1},
		{"itself", []Server{r}, Channel{Source: "db3:3306"}, -1},
		{"no address", []Server{r, a, b}, Channel{}, -1},
	} {
		if got := Source(c.servers, 0, c.ch); got != c.want {
			t.Errorf("%s: got %d, want %d", c.name, got, c.want)
		}
	}
}
