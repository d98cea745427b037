package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// block is the size in which empty parts of a file are looked for: a page of
// InnoDB, and a multiple of what file systems allocate.
const block = 16 << 10

// copyFile makes dst a copy of src. Where the file system can, the two share
// their blocks; else holes stay holes, so that the empty parts of redo and undo
// logs cost nothing. Keep makes empty parts into holes and syncs the file.
func copyFile(dst, src string, keep bool) (err error) {
	in, err := os.Open(src)
	if err != nil {
		return err
	}
	defer in.Close()
	fi, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := os.OpenFile(dst, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fi.Mode().Perm())
	if err != nil {
		return err
	}
	defer func() {
		if cerr := out.Close(); err == nil {
			err = cerr
		}
		if err != nil {
			err = fmt.Errorf("copy %s: %w", src, err)
		}
	}()
	if keep {
		if err := copyDense(out, in, fi.Size()); err != nil {
			return err
		}
		return out.Sync()
	}
	if unix.IoctlFileClone(int(out.Fd()), int(in.Fd())) == nil {
		return nil
	}
	return copyExtents(out, in, fi.Size())
}

// copyDense copies what is not zero.
func copyDense(out, in *os.File, size int64) error {
	buf, zero := make([]byte, block), make([]byte, block)
	for at := int64(0); at < size; {
		n, err := in.ReadAt(buf, at)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if n == 0 {
			break // it became shorter in the meantime
		}
		if !bytes.Equal(buf[:n], zero[:n]) {
			if _, err := out.WriteAt(buf[:n], at); err != nil {
				return err
			}
		}
		at += int64(n)
	}
	return out.Truncate(size)
}

// copyExtents copies what the file system says holds data.
func copyExtents(out, in *os.File, size int64) error {
	if err := out.Truncate(size); err != nil {
		return err
	}
	for at := int64(0); at < size; {
		start, err := unix.Seek(int(in.Fd()), at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			return nil // nothing but a hole to the end
		}
		if err != nil {
			return copyDense(out, in, size) // a file system that knows no holes
		}
		end, err := unix.Seek(int(in.Fd()), start, unix.SEEK_HOLE)
		if err != nil {
			return copyDense(out, in, size)
		}
		if _, err := in.Seek(start, io.SeekStart); err != nil {
			return err
		}
		if _, err := out.Seek(start, io.SeekStart); err != nil {
			return err
		}
		// os.File copies inside the kernel where it can (copy_file_range).
		if _, err := io.CopyN(out, in, end-start); err != nil {
			return err
		}
		at = end
	}
	return nil
}
