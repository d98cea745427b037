package environ

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/rissodb/risso/internal/fleet"
)

// TestUnknownOfEarlierVersions reads what is in stored results, be it of before reason was renamed to why.
func TestUnknownOfEarlierVersions(t *testing.T) {
	for _, text := range []string{
		`{"unknown":[{"what":"the disk","reason":"no right","remedy":"GRANT x"}]}`,
		`{"unknown":[{"what":"the disk","why":"no right","remedy":"GRANT x"}]}`,
	} {
		got, want := Environment{}, Unknown{fleet.Trouble{What: "the disk", Why: "no right", Remedy: "GRANT x"}}
		if err := json.Unmarshal([]byte(text), &got); err != nil || !slices.Equal(got.Unknown, want) {
			t.Errorf("%s: got %+v, %v, want %+v", text, got.Unknown, err, want)
		}
	}
}
