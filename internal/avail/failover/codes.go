package failover

// Code is a reason of a refusal, as docs/failover.md has it.
type Code struct {
	ID    string `json:"id"`
	Of    string `json:"of"` // member: it is not promoted; change: nothing is done; group: no group is made
	Means string `json:"means"`
	Next  string `json:"next"` // what to do
}

// Codes lists the reasons.
func Codes() []Code {
	return []Code{
		{"applier", "member", "it does not apply what it received, or stopped with an error", "mend the error that `risso topology` shows, or `START REPLICA SQL_THREAD` (MariaDB: `START SLAVE SQL_THREAD`; where both of its threads stand, what the words say)"},
		{"channels", "member, group", "it replicates from several servers", "stop and reset the channels that do not lead to the group"},
		{"cluster", "member, group", "it belongs to a Galera cluster or to Group Replication, which choose by themselves", "`risso galera`"},
		{"delayed", "member", "it stays behind on purpose", "name it with `--to`: in a switchover it first catches up while writes go on, in a failover it applies at once what it received (MariaDB: after its delay; `--drain` waits); `risso replica delay MEMBER 0`"},
		{"errant", "member", "it has transactions that no other member has, and that did not come from the old primary", "`risso gtid errant` shows what they changed, `risso gtid repair` mends it"},
		{"faulty", "member", "it is FAULTY", "`risso group set-status GROUP MEMBER SPARE` once it is well"},
		{"filter", "member", "it leaves something out of what it replicates", "take the filter away, and rebuild it: `risso replica rebuild`"},
		{"gtid", "member", "its GTIDs cannot be read", "report it: that is a fault of Risso"},
		{"disk", "member", "in a switchover: its disk has less than 1 GiB left; in a failover it comes after the others", "make room, or name it with `--to`"},
		{"innodb_read_only", "member", "its InnoDB was started read-only", "restart it without `innodb_read_only`"},
		{"log_filter", "member", "its binary log leaves something out", "take `binlog_do_db` and `binlog_ignore_db` out of its option file, and restart it"},
		{"never", "member", "its rule is never", "another rule"},
		{"no_binlog", "member", "it writes no binary log", "`log_bin` in its option file, and a restart"},
		{"no_gtid", "member, group", "it does not use GTIDs", "`gtid_mode = ON`"},
		{"no_log_updates", "member", "it does not log what it replicates, and the group has more than two members", "`log_replica_updates` in its option file, and a restart"},
		{"no_replica", "member", "it does not replicate", "`risso serve --failover auto` points it at the primary"},
		{"not_seen", "member, group", "it does not answer", "what the words say: start it, mend its account or the network"},
		{"offline", "member", "`offline_mode` is ON there: clients would be sent away", "`SET GLOBAL offline_mode = OFF` on it"},
		{"other_source", "member, group", "it replicates from a server that is no member", "`risso replica move MEMBER`"},
		{"position", "member, group", "it replicates by file and position: on MariaDB it is not known then what it received", "the statement that is printed lets it replicate by GTID"},
		{"receives", "member", "it was not stopped from receiving, so that what it has is not final: it did not answer, or it does not apply (a MariaDB whose two threads stand throws away what it received when one is started)", "mend what the other words say of it"},
		{"server_id", "member", "another member has the same `server_id`, and could not replicate from it", "another `server_id` in the option file of one of them, and a restart"},
		{"settings", "member", "in a switchover: its `lower_case_table_names` is another one", "name it with `--to`; the setting is given when a server is initialized"},
		{"spare", "member", "it is SPARE", "name it with `--to`, or make it SECONDARY"},
		{"tried", "member", "it was chosen and did not do: it did not apply all in time, or failed", "the journal says why; `--drain` gives it longer"},
		{"version", "member", "another member, also a primary that is dead, is older and could not replicate from it", "upgrade that one first; or name this one with `--to`: what is older stays out then, as FAULTY"},
		{"loss", "change", "the policy is lossless, and transactions of the old primary would be lost", "start the old primary again, or `--accept-loss`"},
		{"lives", "change", "the primary cannot be asked, and lives: it refuses the account, has no connection left, or replicas receive from it", "mend its account or the way to it; `--accept-loss` fails over all the same, and it may go on to take writes"},
		{"no_member", "change", "the one that was named is no member", "`risso group show`"},
		{"nobody", "change", "no member can follow; the words say why of each", "mend one of them"},
		{"primary", "change", "the one that was named is the primary already", "none is needed"},
		{"rival", "change", "the primary is dead, and a member takes writes and replicates from nobody: somebody made it the primary without Risso, or the state of Risso is an old one", "`risso failover --to NODE` takes that member, the others follow it; or let it take no writes"},
		{"split_brain", "change", "two members each have transactions that the other lacks", "see what they changed with `risso gtid errant`, and name one: `risso failover --to NODE`, with `--accept-loss` if the policy is lossless"},
		{"behind", "change", "in a switchover the new primary would have more than 10,000 transactions to apply while nobody can write", "wait, or `risso lag`"},
		{"not_receiving", "change, group", "in a switchover the new primary does not receive from the old one; of a group: no member receives from its primary", "`START REPLICA IO_THREAD` (MariaDB: `START SLAVE IO_THREAD`), or what its error says"},
		{"too_few_receive", "group", "so few replicas receive from the primary of a group that is failed over automatically that they could not agree that it is dead", "start the receivers that the words name, or mend what they say of them"},
		{"events", "change", "in a switchover the new primary could not run the events of the old one", "start it without `event_scheduler = DISABLED`, or name it with `--to`"},
		{"no_semisync", "change", "in a switchover the new primary has no semi-sync, which the group wants", "`risso group prepare`"},
		{"log_closed", "change", "in a switchover the primary writes no binary log any more, since it could not: no replica has what it took since", "start it again when what its error log names is mended; then `risso checksum`, and rebuild the replicas that differ"},
		{"read_only", "change", "in a switchover the primary takes no writes", "`risso group promote GROUP PRIMARY` opens it; `risso serve --failover auto` does so by itself if it came up read-only"},
		{"replicates", "change", "in a switchover the primary replicates itself", "stop and reset its channel"},
		{"replication_account", "change, group", "the account by which members replicate is not let in, or may not replicate", "the GRANT that is printed, or another `--replication-user`"},
		{"no_address", "group", "it is not known by which address the other members reach it", "give its `--dsn` a host and a port"},
		{"no_primary", "group", "each of the servers replicates from another one", "give the `--dsn` of the primary, too"},
		{"twice", "group", "a server was named twice, by another name or address", "leave one of the two out"},
		{"not_told", "member, group", "it does not tell whom it replicates from", "what the words say: mostly its account lacks a privilege (`risso grants --for failover`)"},
		{"two_primaries", "group", "two of the servers replicate from nobody", "`risso topology` shows them; leave one out, or let it replicate"},
	}
}
