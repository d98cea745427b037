// Package wrap unwraps a log from what other tools put around it: compression, UTF-16, prefixes of lines, JSON.
// It does not know log formats; a function passed in reports whether some text is the beginning of a log.
package wrap

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"github.com/ulikunitz/xz"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// Compressions that are read, by the names of their tools.
const (
	Gzip  = "gzip"
	Zstd  = "zstd"
	Bzip2 = "bzip2"
	XZ    = "xz"
	LZ4   = "lz4"
)

// ErrPacked is for a packing that is not supported.
var ErrPacked = errors.New("this is not read")

const (
	peekLen = 16 << 10
	// maxWindow bounds what unpacking zstd may take, no matter what a file asks for: --ultra -22 --long=27 fits.
	maxWindow = 128 << 20
)

// packings are known by their first bytes.
var packings = []struct{ magic, name string }{
	{"\x1f\x8b", Gzip}, {"\x28\xb5\x2f\xfd", Zstd}, {"BZh", Bzip2}, {"\xfd7zXZ\x00", XZ}, {"\x04\x22\x4d\x18", LZ4},
}

// unread are packings that are known and not read, with what makes them readable.
var unread = []struct{ magic, name, remedy string }{
	{"PK\x03\x04", "a zip archive", "unzip -p FILE | risso digest -"},
	{"7z\xbc\xaf\x27\x1c", "a 7z archive", "7z x -so FILE | risso digest -"},
	{"Rar!\x1a\x07", "a rar archive", "unrar p -inul FILE | risso digest -"},
	{"LZIP", "a file of lzip", "lzip -dc FILE | risso digest -"},
	{"\x1f\x9d", "a file of compress", "zcat FILE | risso digest -"},
	{"\x5d\x00\x00", "a file of lzma", "xz -dc --format=lzma FILE | risso digest -"},
	{"\xff\x06\x00\x00sNaPpY", "a file of snappy", "unpack it into a pipe to risso digest -"},
	{"\x89LZO", "a file of lzop", "lzop -dc FILE | risso digest -"},
}

// Packing names the compression that a file's first bytes show; empty: none.
func Packing(head []byte) string {
	for _, p := range packings {
		if bytes.HasPrefix(head, []byte(p.magic)) {
			return p.name
		}
	}
	return ""
}

// Unpack reads what is inside of a compressed log; what is not compressed is read as it is. Closing ends no reader below.
func Unpack(b *bufio.Reader) (io.Reader, func(), error) {
	head, err := b.Peek(512)
	if err != nil && !errors.Is(err, io.EOF) && len(head) == 0 {
		return nil, nil, err
	}
	nothing := func() {}
	switch Packing(head) {
	case Gzip:
		z, err := gzip.NewReader(b)
		if err != nil {
			return nil, nil, fmt.Errorf("gzip: %w", err)
		}
		return z, func() { z.Close() }, nil
	case Zstd:
		z, err := zstd.NewReader(b, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(2*maxWindow), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, nil, fmt.Errorf("zstd: %w", err)
		}
		return z, z.Close, nil
	case Bzip2:
		return bzip2.NewReader(b), nothing, nil
	case XZ:
		z, err := xz.NewReader(b)
		if err != nil {
			return nil, nil, fmt.Errorf("xz: %w", err)
		}
		return z, nothing, nil
	case LZ4:
		return lz4.NewReader(b), nothing, nil
	}
	for _, p := range unread {
		if bytes.HasPrefix(head, []byte(p.magic)) {
			return nil, nil, fmt.Errorf("%s: %w; %s", p.name, ErrPacked, p.remedy)
		}
	}
	if len(head) > 262 && string(head[257:262]) == "ustar" {
		return nil, nil, fmt.Errorf("a tar archive: %w; tar -xOf FILE NAME | risso digest -", ErrPacked)
	}
	return b, nothing, nil
}

// UTF8 reads text as UTF-8: UTF-16 of both orders, with a mark at its beginning or without one, is turned; a mark of UTF-8 is
// left out. wide says that it was UTF-16.
func UTF8(b *bufio.Reader) (in *bufio.Reader, wide bool, err error) {
	head, err := b.Peek(64)
	if err != nil && !errors.Is(err, io.EOF) && len(head) == 0 {
		return b, false, err
	}
	order, mark := unicode.LittleEndian, unicode.IgnoreBOM
	switch {
	case bytes.HasPrefix(head, []byte("\xef\xbb\xbf")):
		_, err := b.Discard(3)
		return b, false, err
	case bytes.HasPrefix(head, []byte("\xff\xfe")):
		mark = unicode.UseBOM
	case bytes.HasPrefix(head, []byte("\xfe\xff")):
		order, mark = unicode.BigEndian, unicode.UseBOM
	case alternate(head, 1):
	case alternate(head, 0):
		order = unicode.BigEndian
	default:
		return b, false, nil
	}
	return bufio.NewReaderSize(transform.NewReader(b, unicode.UTF16(order, mark).NewDecoder()), peekLen), true, nil
}

// alternate reports whether every other byte is 0, from the given one on, and the others are not: Latin text in UTF-16.
func alternate(head []byte, zero int) bool {
	if len(head) < 16 {
		return false
	}
	for i, c := range head[:len(head)&^1] {
		if (c == 0) != (i&1 == zero) {
			return false
		}
	}
	return true
}
