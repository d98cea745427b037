package mysql

import (
	"fmt"
	"io"
	"testing"

	driver "github.com/go-sql-driver/mysql"
)

// TestAnswered: an answer is not that a server is full, ends, or was busy: that is tried again.
func TestAnswered(t *testing.T) {
	for number, want := range map[uint16]bool{1040: false, 1053: false, 1203: false, 1226: false, 1205: false, 1213: false, 1317: false, 1927: false, 3169: false, 1064: true, 1227: true, 1200: true} {
		if got := Answered(fmt.Errorf("START REPLICA on db: %w", &driver.MySQLError{Number: number})); got != want {
			t.Errorf("%d: got %t, want %t", number, got, want)
		}
	}
	if Answered(nil) || Answered(io.ErrUnexpectedEOF) {
		t.Error("no answer at all is one")
	}
}
