package home

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// Exists reports whether there is something of that name; if that cannot be seen, it says yes.
func Exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// WarnOfOwner tells root that the folder is of another account, which could not read what root puts there.
func WarnOfOwner(w io.Writer, dir string) {
	if owner, ok := OtherOwner(dir); ok {
		fmt.Fprintf(w, "risso: %s belongs to %s, which could not use files created by root: run risso as that account\n", dir, owner)
	}
}

// OtherOwner returns the owner of a folder when that is another account than root, and root asks.
func OtherOwner(dir string) (name string, ok bool) {
	fi, err := os.Stat(dir)
	if err != nil || os.Geteuid() != 0 {
		return "", false
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok || st.Uid == 0 {
		return "", false
	}
	return AccountName(int(st.Uid)), true
}

// AccountName is the name of an account, or its number if it has none.
func AccountName(uid int) string {
	u, err := user.LookupId(strconv.Itoa(uid))
	if err != nil {
		return strconv.Itoa(uid)
	}
	return u.Username
}
