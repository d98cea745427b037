package wsrep

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

// TestStatus: numbers as servers write them.
func TestStatus(t *testing.T) {
	s := Parse(map[string]string{"wsrep_local_cached_downto": "18446744073709551615", "wsrep_cluster_size": "4", "wsrep_incoming_addresses": "db1:3306,,AUTO", "wsrep_ready": "OFF", "wsrep_local_state": "2"},
		map[string]string{"wsrep_provider": "/usr/lib/x.so", "wsrep_on": "ON", "wsrep_sst_auth": "a:b", "wsrep_notify_cmd": "/n a:b", "wsrep_cluster_address": "gcomm://db1,db2:4567?socket.ssl_key=/k", "wsrep_provider_options": "gcs.fc_limit = 16; socket.ssl_key = /k; pc.weight = 3; gcache.size = 128M; "})
	if s.CachedFrom != -1 || s.Committed != -1 || s.QueueLimit() != 32 || s.Votes() != 3 || s.StateComment != "Donor/Desynced" || fmt.Sprint(s.Peers) != "[db1:3306  AUTO]" || !s.On || s.Ready {
		t.Errorf("got %+v", s)
	}
	if text := fmt.Sprint(s); strings.Contains(text, "/k") || strings.Contains(text, "a:b") {
		t.Errorf("it tells secrets: %s", text)
	}
	if got := fmt.Sprint(s.GroupAddresses()); got != "[db1 db2]" {
		t.Errorf("got %s; want the hosts without the usual port", got)
	}
	for text, want := range map[string]float64{"128M": 128 << 20, "1G": 1 << 30, "17": 17, "2k": 2048, "": math.NaN(), "M": math.NaN(), "x": math.NaN()} {
		if got, ok := Size(text); ok == math.IsNaN(want) || ok && got != want {
			t.Errorf("%q: got %v, %t; want %v", text, got, ok, want)
		}
	}
}
