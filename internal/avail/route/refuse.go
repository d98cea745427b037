package route

import "encoding/binary"

// Numbers of errors, both of a server: libraries take them for a connection that could not be made (SQLSTATE 08), which may be tried again. Those of clients, such
// as 2003, MariaDB's library refuses to read.
const (
	errTooMany = 1040 // as a server that has no room
	errNoPlace = 1053 // as a server that is shut down
)

// refusal is the packet by which a server refuses a client that it has not greeted. No capabilities are agreed then, so it has no SQLSTATE.
func refusal(number uint16, text string) []byte {
	const most = 500 // as MySQL's own messages, MYSQL_ERRMSG_SIZE being 512
	if len(text) > most {
		text = text[:most]
	}
	size := 3 + len(text)
	b := []byte{byte(size), byte(size >> 8), byte(size >> 16), 0, 0xff}
	b = binary.LittleEndian.AppendUint16(b, number)
	return append(b, text...)
}
