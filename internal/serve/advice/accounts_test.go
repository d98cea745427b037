package advice

import (
	"strings"
	"testing"

	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sandbox/sandboxtest"
)

// TestAccountsSayWhose: lists and messages show of a finding what it says, and not what it is about: it says that itself.
func TestAccountsSayWhose(t *testing.T) {
	node := sandboxtest.Lend(t, "mariadb")
	target, err := mysql.ParseTarget(node.DSN)
	if err != nil {
		t.Fatal(err)
	}
	found, _, err := Accounts(t.Context(), target, "db1")
	if err != nil || len(found) == 0 {
		t.Fatalf("got %d findings, %v", len(found), err)
	}
	for _, f := range found {
		if !strings.HasPrefix(f.What, f.Object+" ") {
			t.Errorf("%s of %s says: %s", f.ID, f.Object, f.What)
		}
	}
}
