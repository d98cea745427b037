package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/user"
	"strconv"
	"syscall"

	"github.com/rissodb/risso/internal/store/state"
)

// folderFailure gives an error of the data folder the hint that mends it.
func folderFailure(dir string, err error) error {
	hint := ""
	switch {
	case errors.Is(err, fs.ErrPermission) && !exists(dir):
		hint = fmt.Sprintf("make it as root (install -d -m 700 -o %s %s), or choose another folder with --data", accountName(os.Geteuid()), dir)
	case errors.Is(err, fs.ErrPermission):
		hint = fmt.Sprintf("run risso as the owner of %s, give all of it to this account (chown -R %s), or choose another folder with --data", dir, accountName(os.Geteuid()))
	case errors.Is(err, syscall.EROFS):
		hint = "the file system is mounted read-only; choose another folder with --data, or, under systemd, name this one with StateDirectory= or ReadWritePaths="
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), errors.Is(err, state.ErrDiskFull):
		hint = "free some space there, or choose another folder with --data"
	case errors.Is(err, syscall.ENOTDIR):
		hint = "choose another folder with --data"
	}
	return failure(exitFailed, hint, err)
}

// exists says whether there is something of that name; where that cannot be seen, there is.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// warnOfOwner tells root that the folder is of another account, which could not read what root puts there.
func warnOfOwner(w io.Writer, dir string) {
	if owner, ok := otherOwner(dir); ok {
		fmt.Fprintf(w, "risso: %s belongs to %s, which cannot use what root puts there: run risso as that account\n", dir, owner)
	}
}

// otherOwner gives the owner of a folder when that is another account than root, and root asks.
func otherOwner(dir string) (name string, ok bool) {
	fi, err := os.Stat(dir)
	if err != nil || os.Geteuid() != 0 {
		return "", false
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok || st.Uid == 0 {
		return "", false
	}
	return accountName(int(st.Uid)), true
}

// accountName is the name of an account, or its number where it has none.
func accountName(uid int) string {
	u, err := user.LookupId(strconv.Itoa(uid))
	if err != nil {
		return strconv.Itoa(uid)
	}
	return u.Username
}
