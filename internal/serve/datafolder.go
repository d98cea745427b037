package serve

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/home"
	"github.com/rissodb/risso/internal/store/state"
)

// FolderFailure adds a remedy to an error of the data folder.
func FolderFailure(dir string, err error) error {
	remedy := ""
	switch {
	case errors.Is(err, fs.ErrPermission) && !home.Exists(dir):
		remedy = fmt.Sprintf("make it as root (install -d -m 700 -o %s %s), or choose another folder with --data", home.AccountName(os.Geteuid()), dir)
	case errors.Is(err, fs.ErrPermission):
		remedy = fmt.Sprintf("run risso as the owner of %s, give all of it to this account (chown -R %s), or choose another folder with --data", dir, home.AccountName(os.Geteuid()))
	case errors.Is(err, syscall.EROFS):
		remedy = "the file system is mounted read-only; choose another folder with --data, or, under systemd, name this one with StateDirectory= or ReadWritePaths="
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), errors.Is(err, state.ErrDiskFull):
		remedy = "free some space there, or choose another folder with --data"
	case errors.Is(err, syscall.ENOTDIR):
		remedy = "choose another folder with --data"
	}
	return fault.New(fault.Failed, remedy, err)
}
