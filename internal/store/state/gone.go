package state

import (
	"context"
	"errors"
	"fmt"
	"os"
)

// rescued is what a copy of a file is called that is gone.
const rescued = ".rescued"

// Gone reports whether the file at Path was removed, or is another one than that which is open: all that is written then is lost when the process ends. If so, it writes
// a whole copy beside it, anew each time, and returns its path; else "".
func (s *Store) Gone(ctx context.Context) (copied string, err error) {
	now, err := os.Stat(s.path)
	if err == nil && os.SameFile(now, s.file) || err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", nil // an error says nothing of the file
	}
	copied = s.path + rescued
	fresh := copied + ".new"
	if err := os.Remove(fresh); err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("%s is gone; keep what is open of it: %w", s.path, err)
	}
	if _, err = s.write.ExecContext(ctx, `VACUUM INTO ?`, fresh); err == nil {
		err = errors.Join(os.Chmod(fresh, 0o600), os.Rename(fresh, copied))
	}
	if err != nil {
		return "", fmt.Errorf("%s is gone; keep what is open of it: %w", s.path, explain(err))
	}
	return copied, nil
}
