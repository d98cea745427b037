package read

import "testing"

// TestDoing: what states of the servers' versions mean.
func TestDoing(t *testing.T) {
	for state, want := range map[string]ApplierDoing{
		"Waiting for the replica SQL thread to free relay log space": ApplierRelayFull, "Waiting for the slave SQL thread to free enough relay log space": ApplierRelayFull,
		"Queueing source event to the relay log": ApplierQueues, "Queueing master event to the relay log": ApplierQueues,
		"Waiting until SOURCE_DELAY seconds after source executed event": ApplierDelayed, "Waiting until MASTER_DELAY seconds after master executed event": ApplierDelayed,
		"Replica has read all relay log; waiting for more updates": ApplierIdle, "Slave has read all relay log; waiting for more updates": ApplierIdle,
		"Waiting for an event from Coordinator": ApplierIdle, "Waiting for work from SQL thread": ApplierIdle,
		"Waiting for preceding transaction to commit": ApplierInOrder, "Waiting for prior transaction to commit": ApplierInOrder, "Waiting for its turn to commit": ApplierInOrder,
		"Waiting for dependent transaction to commit": ApplierFeeds, "Waiting for room in worker thread event queue": ApplierFeeds, "Waiting for replica workers to process their queues": ApplierFeeds,
		"Waiting for table metadata lock": ApplierLocked, "Waiting for global read lock": ApplierLocked, "Waiting for commit lock": ApplierLocked,
		"waiting for handler commit": ApplierCommits, "Waiting for semi-sync ACK from replica": ApplierSemiSync,
		"Reading event from the relay log": ApplierBusy, "Applying batch of row changes (update)": ApplierBusy, "Update_rows_log_event::find_row()": ApplierBusy, "": ApplierBusy,
	} {
		if got := doingOf(ApplierCoordinates, state); got != want {
			t.Errorf("%q: got %s, want %s", state, got, want)
		}
	}
	for _, state := range []string{"Waiting for source to send event", "Connecting to source", "Reconnecting after a failed source event read"} {
		if got := doingOf(ApplierReceives, state); got != ApplierIdle {
			t.Errorf("%q of who receives: got %s, want %s", state, got, ApplierIdle)
		}
	}
}
