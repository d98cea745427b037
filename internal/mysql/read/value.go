package read

import (
	"bytes"
	sqldriver "database/sql/driver"
	"math"
	"strconv"
	"time"
)

// number reads a value as the server shows it, by mysqld_exporter's rules: yes, on and Primary are 1,
// their opposites 0; a binary log's name is its number; a date is unix seconds.
func number(v sqldriver.Value) (float64, bool) {
	switch v := v.(type) {
	case []byte:
		return numberOf(v)
	case int64:
		return float64(v), true
	case uint64:
		return float64(v), true
	case float64:
		return v, true
	case float32:
		return float64(v), true
	case string:
		return numberOf([]byte(v))
	}
	return 0, false
}

// whole is a number without its fraction; what is none is 0.
func whole(v sqldriver.Value) int64 {
	n, _ := number(v)
	return int64(n)
}

func numberOf(b []byte) (float64, bool) {
	if n, ok := integer(b); ok {
		return n, true
	}
	if len(b) == 0 {
		return 0, false
	}
	switch c := b[0] | 0x20; {
	case c >= '0' && c <= '9', c == '-', c == '+', c == '.':
		f, err := strconv.ParseFloat(string(b), 64)
		if err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
			return dateOrLog(b)
		}
		return f, true
	}
	return word(b)
}

// integer reads a plain decimal that fits an int64: nearly every value is one.
func integer(b []byte) (float64, bool) {
	if len(b) == 0 || len(b) > 18 {
		return 0, false
	}
	var n int64
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return float64(n), true
}

func word(b []byte) (float64, bool) {
	if len(b) <= 12 {
		switch string(bytes.ToLower(b)) {
		case "yes", "on", "primary", "true":
			return 1, true
		case "no", "off", "connecting", "preparing", "non-primary", "disconnected", "disabled", "false":
			return 0, true
		}
	}
	if n, ok := logNumber(b); ok {
		return n, true
	}
	if t, err := time.Parse("Jan _2 15:04:05 2006 MST", string(b)); err == nil {
		return float64(t.Unix()), true
	}
	return 0, false
}

// dateOrLog is unix seconds for 2026-11-21 10:28:11, as of Max_used_connections_time, taken as UTC as mysqld_exporter
// does; or else a log's number.
func dateOrLog(b []byte) (float64, bool) {
	if len(b) == len(time.DateTime) {
		if t, err := time.Parse(time.DateTime, string(b)); err == nil {
			return float64(t.Unix()), true
		}
	}
	return logNumber(b)
}

// logNumber is 17 for mysql-bin.000017.
func logNumber(b []byte) (float64, bool) {
	i := bytes.LastIndexByte(b, '.')
	if i <= 0 || len(b)-i-1 < 6 {
		return 0, false
	}
	return integer(b[i+1:])
}
