package digest

import "bytes"

// headNames are what lines of a header begin with, as MySQL, Percona Server and MariaDB write them. Sources: those of roles.
var headNames = map[string]bool{
	"Query_time": true, "Thread_id": true, "Schema": true, "Bytes_sent": true, "Rows_affected": true, "Rows_read": true, "Full_scan": true,
	"Filesort": true, "Tmp_tables": true, "QC_Hit": true, "QC_hit": true, "Stored_routine": true, "Stored routine": true, "Profile_starting": true,
	"InnoDB_trx_id": true, "InnoDB_IO_r_ops": true, "InnoDB_rec_lock_wait": true, "InnoDB_pages_distinct": true, "InnoDB_queue_wait": true,
	"Log_slow_rate_type": true, "Pages_accessed": true, "Priority_queue": true, "Last_errno": true, "Errno": true, "Start": true, "Read_first": true,
	"Merge_passes": true, "Engine_time": true, "Pages_read_time": true, "Query_id": true, "Id": true,
}

// isHead reports whether a line of an event's header begins at b[i:], a line's start. The line must be whole. It looks closer
// at the lines that people write in comments, too.
func isHead(b []byte, i int) bool {
	if len(b)-i < len("# Id: 1\n") || b[i] != '#' || b[i+1] != ' ' {
		return false
	}
	switch b[i+2] {
	case 'T':
		if hasPrefix(b, i, timeMark) {
			return isDate(b[i+len(timeMark):]) || bytes.Contains(b[i:lineEnd(b, i)], []byte(userMark))
		}
	case 'U':
		if hasPrefix(b, i, userMark) || hasPrefix(b, i, aliasMark) {
			return bytes.Contains(b[i:lineEnd(b, i)], []byte("] @ "))
		}
		return false
	case 'N':
		return hasPrefix(b, i, "# No InnoDB statistics available")
	case 'e':
		return hasPrefix(b, i, explainMark) && bytes.IndexByte(b[i:lineEnd(b, i)], '\t') > 0
	}
	n := i + 2
	for n < len(b) && n-i < 32 && b[n] != ':' && b[n] >= ' ' {
		n++
	}
	return n+1 < len(b) && b[n] == ':' && b[n+1] == ' ' && headNames[string(b[i+2:n])]
}
