package host

import (
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

func utoa(n int) string { return strconv.Itoa(n) }

// diskColumn is one figure of /proc/diskstats after the name. The kernel prints
// all times as 32-bit milliseconds, which wrap after 49 days of waiting.
type diskColumn struct {
	t     template
	scale float64
	wraps bool
}

// sectorBytes is the unit of /proc/diskstats, whatever the disk's own sector size is.
const sectorBytes = 512

var diskColumns = [...]diskColumn{
	{template{name: "node_disk_reads_completed_total", unit: "1", kind: Counter, help: "Reads completed."}, 1, false},
	{template{name: "node_disk_reads_merged_total", unit: "1", kind: Counter, help: "Reads merged with a neighbour."}, 1, false},
	{template{name: "node_disk_read_bytes_total", unit: "bytes", kind: Counter, help: "Bytes read."}, sectorBytes, false},
	{template{name: "node_disk_read_time_seconds_total", unit: "seconds", kind: Counter, help: "Total time of reads; divided by reads completed it is the read latency."}, 1e-3, true},
	{template{name: "node_disk_writes_completed_total", unit: "1", kind: Counter, help: "Writes completed."}, 1, false},
	{template{name: "node_disk_writes_merged_total", unit: "1", kind: Counter, help: "Writes merged with a neighbour."}, 1, false},
	{template{name: "node_disk_written_bytes_total", unit: "bytes", kind: Counter, help: "Bytes written."}, sectorBytes, false},
	{template{name: "node_disk_write_time_seconds_total", unit: "seconds", kind: Counter, help: "Total time of writes; divided by writes completed it is the write latency."}, 1e-3, true},
	{template{name: "node_disk_io_now", unit: "1", kind: Gauge, help: "Reads and writes under way."}, 1, false},
	{template{name: "node_disk_io_time_seconds_total", unit: "seconds", kind: Counter, help: "Time in which the disk was busy."}, 1e-3, true},
	{template{name: "node_disk_io_time_weighted_seconds_total", unit: "seconds", kind: Counter, help: "Total time of all reads and writes; its rate is the queue length."}, 1e-3, true},
	{template{name: "node_disk_discards_completed_total", unit: "1", kind: Counter, help: "Discards (TRIM) completed."}, 1, false},
	{template{name: "node_disk_discards_merged_total", unit: "1", kind: Counter, help: "Discards merged with a neighbour."}, 1, false},
	{template{name: "node_disk_discarded_sectors_total", unit: "sectors", kind: Counter, help: "Sectors of 512 bytes discarded."}, 1, false},
	{template{name: "node_disk_discard_time_seconds_total", unit: "seconds", kind: Counter, help: "Total time of discards."}, 1e-3, true},
	{template{name: "node_disk_flush_requests_total", unit: "1", kind: Counter, help: "Flushes completed: the fsync of redo log and binary log ends in one."}, 1, false},
	{template{name: "node_disk_flush_requests_time_seconds_total", unit: "seconds", kind: Counter, help: "Total time of flushes; divided by flushes it is what a commit waits for."}, 1e-3, true},
}

// disks parses /proc/diskstats.
type disks struct {
	h    *Host
	tick uint64
	at   map[string]*disk // nil for a device that is skipped
}

type disk struct {
	first int // position of the first column
	cols  int // columns that this kernel prints: 11, 15 (4.18) or 17 (5.5)
	tick  uint64
	last  [len(diskColumns)]uint64
	plus  [len(diskColumns)]uint64 // what wraps have cost so far
}

func (h *Host) addDisks() {
	d := &disks{h: h, at: map[string]*disk{}}
	h.add("/proc/diskstats", "disk statistics", "mount /proc; in a container, give it the host's /proc", d.parse)
}

func (d *disks) parse(b []byte) {
	d.tick++
	in := cursor{b: b}
	for {
		l, ok := in.line()
		if !ok {
			return
		}
		l.skip(2) // major and minor number
		name := l.field()
		if len(name) == 0 {
			continue
		}
		dev, known := d.at[string(name)]
		if known && dev == nil {
			continue
		}
		var v [len(diskColumns)]uint64
		n, any := 0, false
		for ; n < len(v); n++ {
			x, ok := l.uint()
			if !ok {
				break
			}
			v[n], any = x, any || x != 0
		}
		if n < 11 {
			continue // kernels before 2.6.25 printed partitions with four figures
		}
		if !known {
			// A device that never did anything (nbd0 to nbd15) is no series yet.
			if !any || len(d.at) >= maxDevices {
				continue
			}
			if dev = d.define(string(name), n); dev == nil {
				continue
			}
		}
		dev.take(d.tick, v[:min(n, dev.cols)], d.h.values)
	}
}

// take stores the figures and undoes the wrap of 32-bit times. A disk that was
// away starts over: what it counts now is another disk's life.
func (k *disk) take(tick uint64, v []uint64, values []float64) {
	if k.tick+1 != tick {
		k.last, k.plus = [len(diskColumns)]uint64{}, [len(diskColumns)]uint64{}
	}
	k.tick = tick
	for i, x := range v {
		c := &diskColumns[i]
		if x < k.last[i] && c.t.kind == Counter {
			if c.wraps && k.last[i]-x > 1<<31 && k.last[i] < 1<<32 {
				k.plus[i] += 1 << 32
			} else {
				k.plus[i] = 0
			}
		}
		k.last[i] = x
		values[k.first+i] = float64(x+k.plus[i]) * c.scale
	}
}

// define decides whether a device is worth its series. The kernel prints 11
// figures, 15 with discards (4.18) and 17 with flushes (5.5); what is not printed
// is not defined.
func (d *disks) define(name string, cols int) *disk {
	if !d.wanted(name) {
		d.at[name] = nil
		return nil
	}
	if cols >= len(diskColumns) {
		cols = len(diskColumns)
	} else {
		d.h.gaps.set(flushGap(name))
	}
	ts := make([]template, cols)
	for i := range ts {
		ts[i] = diskColumns[i].t
	}
	k := &disk{first: d.h.defineAll(ts, "/proc/diskstats", Label{Name: "device", Value: name}), cols: cols}
	d.at[name] = k
	return k
}

// wanted reports whether a device is kept: whole disks, except loop devices, RAM
// disks, floppies and CD drives; and partitions that hold a mounted file system,
// where the disk holds another one too, so that the whole does not show the part.
func (d *disks) wanted(name string) bool {
	if rest, ok := strings.CutPrefix(name, "loop"); ok && allDigits(rest) {
		return d.h.fs.mountedDevices()[name] // images that are only read are not among them
	}
	for _, p := range []string{"ram", "zram", "sr", "fd"} {
		if rest, ok := strings.CutPrefix(name, p); ok && allDigits(rest) {
			return false
		}
	}
	sys := d.h.path("/sys/block")
	if !exists(sys) {
		return !looksLikePartition(name)
	}
	// sysfs writes a slash in a name (cciss/c0d0) as an exclamation mark.
	entry := strings.ReplaceAll(name, "/", "!")
	if exists(filepath.Join(sys, entry)) {
		return true
	}
	mounted := d.h.fs.mountedDevices()
	if !mounted[name] {
		return false
	}
	for other := range mounted {
		if other != name && sameDisk(sys, entry, strings.ReplaceAll(other, "/", "!")) {
			return true
		}
	}
	return false
}

// sameDisk reports whether two partitions are on one disk.
func sameDisk(sys, a, b string) bool {
	found, err := filepath.Glob(filepath.Join(sys, "*", globEscape(a)))
	return err == nil && len(found) == 1 && exists(filepath.Join(filepath.Dir(found[0]), b))
}

func globEscape(s string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(s)
}

// looksLikePartition judges by the name alone, for a host without /sys.
func looksLikePartition(name string) bool {
	stem := strings.TrimRight(name, "0123456789")
	if stem == name {
		return false
	}
	switch {
	case strings.HasPrefix(name, "nvme"), strings.HasPrefix(name, "mmcblk"), strings.HasPrefix(name, "nbd"), strings.HasPrefix(name, "md"):
		return strings.HasSuffix(stem, "p") && len(stem) > 1 && allDigits(stem[len(stem)-2:len(stem)-1])
	case strings.HasPrefix(name, "sd"), strings.HasPrefix(name, "vd"), strings.HasPrefix(name, "xvd"), strings.HasPrefix(name, "hd"):
		return true
	}
	return false
}

func allDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

func exists(path string) bool {
	var st unix.Stat_t
	return unix.Lstat(path, &st) == nil
}
