package digits

import (
	"errors"
	"time"
)

// ParseAge reads a length of time that is not 0; "" is 0, which means unset.
func ParseAge(s string) (time.Duration, error) {
	if s == "" {
		return 0, nil
	}
	d, err := ParseDuration(s)
	if err == nil && d == 0 {
		err = errors.New("a length of time above 0, such as 36h, 14d or 1y")
	}
	return d, err
}
