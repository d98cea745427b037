package binlog

import "github.com/rissodb/risso/internal/binlogevent"

// What the logs in the tests are made of.
const (
	headerLen           = binlogevent.HeaderLen
	evQuery             = byte(binlogevent.TypeQuery)
	evFormatDescription = byte(binlogevent.TypeFormatDescription)
	evTableMap          = byte(binlogevent.TypeTableMap)
	evRowsQuery         = byte(binlogevent.TypeRowsQuery)
	evWriteRows         = byte(binlogevent.TypeWriteRows)
	evGTID              = byte(binlogevent.TypeGTID)
	evPayload           = byte(binlogevent.TypePayload)
	evQueryZip          = byte(binlogevent.TypeQueryZip)
)

var magic = binlogevent.Magic
