package cli

import (
	"crypto/md5"
	"encoding/hex"
)

// planID stands in until explain/plan is merged.
func planID(text string) (string, error) {
	s := md5.Sum([]byte(text))
	return hex.EncodeToString(s[:]), nil
}
