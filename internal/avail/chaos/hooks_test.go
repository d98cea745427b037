package chaos

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestHookEnds: what a hook has started ends with it, and does nothing later.
func TestHookEnds(t *testing.T) {
	t.Parallel()
	late := filepath.Join(t.TempDir(), "late")
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := Hook(ctx, "(sleep 1; touch "+late+") & wait"); err == nil {
		t.Error("a hook that was ended did not fail")
	}
	time.Sleep(1500 * time.Millisecond)
	if _, err := os.Stat(late); !os.IsNotExist(err) {
		t.Errorf("what a hook started goes on after it: %v", err)
	}
}
