package failover

import (
	"fmt"
	"testing"
)

// TestReceivedStaysShort: what a member had is put together again and again while the primary is suspected, ten times a second.
func TestReceivedStaysShort(t *testing.T) {
	const uuid = "aaaaaaaa-0000-0000-0000-000000000001"
	mysqls, marias := "", ""
	for i := 1; i <= 5000; i++ {
		mysqls = Received(mysqls, fmt.Sprintf("%s:1-%d", uuid, i), fmt.Sprintf("%s:%d", uuid, i))
		marias = Received(marias, fmt.Sprintf("0-1-%d,3-1-7", i), "0-2-4")
	}
	if want := uuid + ":1-5000"; mysqls != want {
		t.Errorf("got %.200s, want %s", mysqls, want)
	}
	if want := "3-1-7,0-1-5000,0-2-4"; len(marias) != len(want) {
		t.Errorf("got %.200s, want %s in some order", marias, want)
	}
}
