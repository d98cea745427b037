package host

import (
	"os"
	"path/filepath"
	"testing"
)

// writeTree makes files under a folder. What is in them here was written after the kernel's documents (cgroup-v1, cgroup-v2,
// proc_pid_mountinfo(5)), in the form that real machines show.
func writeTree(t *testing.T, files map[string]string) *Host {
	t.Helper()
	root := t.TempDir()
	files["/proc/stat"] = "cpu  1 2 3 4 5 6 7 8 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\n"
	for path, text := range files {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	h, err := New(Options{Root: root})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

const cgroup2Mount = "30 24 0:26 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:4 - cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot\n"

// A unit may use 4 processors, its slice only 2.5: the tightest on the way up holds.
func TestLimitsV2(t *testing.T) {
	h := writeTree(t, map[string]string{
		"/proc/self/mountinfo":                                          cgroup2Mount,
		"/proc/77/cgroup":                                               "0::/db.slice/mariadb.service\n",
		"/proc/77/status":                                               "Name:\tmariadbd\nPPid:\t1\nCpus_allowed_list:\t0-3,8\n",
		"/proc/77/comm":                                                 "mariadbd\n",
		"/sys/fs/cgroup/db.slice/cpu.max":                               "250000 100000\n",
		"/sys/fs/cgroup/db.slice/memory.max":                            "max\n",
		"/sys/fs/cgroup/db.slice/mariadb.service/cpu.max":               "400000 100000\n",
		"/sys/fs/cgroup/db.slice/mariadb.service/memory.max":            "8589934592\n",
		"/sys/fs/cgroup/db.slice/mariadb.service/memory.high":           "max\n",
		"/sys/fs/cgroup/db.slice/mariadb.service/cpu.weight":            "100\n",
		"/sys/fs/cgroup/db.slice/mariadb.service/io.weight":             "default 50\n",
		"/sys/fs/cgroup/db.slice/mariadb.service/io.max":                "8:0 rbps=max wbps=1048576 riops=max wiops=max\n",
		"/sys/fs/cgroup/db.slice/mariadb.service/cpuset.cpus.effective": "0-3\n",
		"/sys/fs/cgroup/db.slice/mariadb.service/cpuset.mems.effective": "0\n",
		"/sys/fs/cgroup/db.slice/mariadb.service/cgroup.type":           "domain\n",
	})
	want := Limits{Version: 2, Path: "/db.slice/mariadb.service", Slice: "db.slice", Unit: "mariadb.service", CPUs: 2.5, CPUWeight: "100", CPUSet: "0-3", MemorySet: "0",
		MemoryBytes: 8 << 30, IOWeight: "50", IOMax: "8:0 rbps=max wbps=1048576 riops=max wiops=max", Affinity: "0-3,8"}
	if got := h.Limits(77); got != want {
		t.Errorf("\n%+v, not\n%+v", got, want)
	}
	if h.Command(77) != "mariadbd" || h.Parent(77) != 1 || h.Command(78) != "" || h.Parent(0) != 0 {
		t.Error("command or parent of a process")
	}
}

// In a container of version 1 the mounts show the container's own part, under its name on the host.
func TestLimitsV1InContainer(t *testing.T) {
	mounts := ""
	for i, c := range []string{"cpu,cpuacct", "memory", "cpuset"} {
		mounts += string(rune('1'+i)) + " 24 0:3 /docker/abc /sys/fs/cgroup/" + c + " ro,nosuid - cgroup cgroup rw," + c + "\n"
	}
	h := writeTree(t, map[string]string{
		"/proc/self/mountinfo":                         mounts,
		"/proc/self/cgroup":                            "4:memory:/docker/abc\n3:cpu,cpuacct:/docker/abc\n2:cpuset:/docker/abc\n",
		"/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us":  "150000\n",
		"/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
		"/sys/fs/cgroup/cpu,cpuacct/cpu.shares":        "1024\n",
		"/sys/fs/cgroup/memory/memory.limit_in_bytes":  "536870912\n",
		"/sys/fs/cgroup/cpuset/cpuset.cpus":            "2\n",
	})
	got := h.Limits(0)
	if got.Version != 1 || got.CPUs != 1.5 || got.MemoryBytes != 512<<20 || got.CPUSet != "2" || got.CPUWeight != "1024" {
		t.Errorf("got %+v; want Version 1, CPUs 1.5, MemoryBytes 512 << 20, CPUSet \"2\", CPUWeight \"1024\"", got)
	}
	if h.Setup().Container != "docker" {
		t.Errorf("the container is %q, want \"docker\"", h.Setup().Container)
	}
}

func TestNoLimits(t *testing.T) {
	h := writeTree(t, map[string]string{
		"/proc/self/mountinfo":                        "5 24 0:3 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n6 24 0:3 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n",
		"/proc/self/cgroup":                           "4:memory:/\n3:cpu:/\n",
		"/sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
		"/sys/fs/cgroup/cpu/cpu.cfs_quota_us":         "-1\n",
		"/sys/fs/cgroup/cpu/cpu.cfs_period_us":        "100000\n",
	})
	if got := h.Limits(0); got.CPUs != 0 || got.MemoryBytes != 0 || got.Version != 1 {
		t.Errorf("got %+v; want CPUs 0, MemoryBytes 0, Version 1", got)
	}
	if got := h.Limits(4242); got != (Limits{}) {
		t.Errorf("of a process that is not there: %+v, want Limits{}", got)
	}
}

// The last of the mounts on one place covers the others, and a longer path wins.
func TestMountOf(t *testing.T) {
	const text = `22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw,errors=remount-ro
40 22 253:2 / /var/lib/mysql rw,noatime shared:20 - xfs /dev/mapper/vg-mysql rw,attr2,inode64,logbufs=8,logbsize=32k,noquota
41 22 0:50 / /var/lib/mysql\040two rw,relatime - zfs tank/mysql rw,xattr,noacl
42 22 0:51 / /srv rw - btrfs /dev/sdc rw,compress=zstd:3
43 42 0:60 / /srv/over rw,relatime - overlay overlay rw,lowerdir=/a:/b,upperdir=/c,workdir=/d,index=off
44 22 0:61 / /nfs rw,hard - nfs4 filer:/db rw,vers=4.2,rsize=1048576
45 22 253:3 / /var/lib/mysql rw,nodev - ext4 /dev/mapper/vg-new rw,data=writeback
broken line
`
	for _, c := range []struct{ folder, mount, fstype, source, options, number string }{
		{"/home/x", "/", "ext4", "/dev/sda1", "rw,relatime,errors=remount-ro", "8:1"},
		{"/var/lib/mysql", "/var/lib/mysql", "ext4", "/dev/mapper/vg-new", "rw,nodev,data=writeback", "253:3"},
		{"/var/lib/mysql/data", "/var/lib/mysql", "ext4", "/dev/mapper/vg-new", "rw,nodev,data=writeback", "253:3"},
		{"/var/lib/mysqlold", "/", "ext4", "/dev/sda1", "rw,relatime,errors=remount-ro", "8:1"},
		{"/var/lib/mysql two/x", "/var/lib/mysql two", "zfs", "tank/mysql", "rw,relatime,xattr,noacl", "0:50"},
		{"/srv/over/data", "/srv/over", "overlay", "overlay", "rw,relatime,index=off", "0:60"},
		{"/srv/data", "/srv", "btrfs", "/dev/sdc", "rw,compress=zstd:3", "0:51"},
		{"/nfs", "/nfs", "nfs4", "filer:/db", "rw,hard,vers=4.2,rsize=1048576", "0:61"},
	} {
		s, number, ok := mountOf(text, c.folder)
		if !ok || s.Mount != c.mount || s.FileSystem != c.fstype || s.Source != c.source || s.Options != c.options || number != c.number {
			t.Errorf("%s: got %+v %s; want ok true, Mount %v, FileSystem %v, Source %v, Options %v, number %s",
				c.folder, s, number, c.mount, c.fstype, c.source, c.options, c.number)
		}
	}
	if _, _, ok := mountOf("", "/x"); ok {
		t.Error("a mount of nothing")
	}
}

// A partition's queue is its disk's; btrfs has its own number and names its device.
func TestStorageDevice(t *testing.T) {
	h := writeTree(t, map[string]string{
		"/proc/self/mountinfo":                        "22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n42 22 0:51 / /srv rw - btrfs /dev/sdc rw\n",
		"/sys/devices/pci/block/sda/queue/scheduler":  "none [mq-deadline] kyber\n",
		"/sys/devices/pci/block/sda/queue/rotational": "1\n",
		"/sys/devices/pci/block/sda/device/model":     "ST4000\n",
		"/sys/devices/pci/block/sda/sda1/partition":   "1\n",
		"/sys/devices/pci/block/sdc/queue/scheduler":  "[none]\n",
		"/sys/devices/pci/block/sdc/queue/rotational": "0\n",
	})
	for link, to := range map[string]string{"/sys/dev/block/8:1": "/sys/devices/pci/block/sda/sda1", "/sys/class/block/sdc": "/sys/devices/pci/block/sdc"} {
		if err := os.MkdirAll(filepath.Dir(h.path(link)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(h.path(to), h.path(link)); err != nil {
			t.Fatal(err)
		}
	}
	s, err := h.Storage(0, "/var/lib/mysql")
	if err != nil || s.Device != "sda1" || s.Scheduler != "mq-deadline" || s.Rotational == nil || !*s.Rotational || s.Model != "ST4000" {
		t.Errorf("got %+v %v; want Device \"sda1\", Scheduler \"mq-deadline\", Rotational not nil, *s.Rotational true, Model \"ST4000\"", s, err)
	}
	s, err = h.Storage(0, "/srv/data")
	if err != nil || s.Device != "sdc" || s.Scheduler != "none" || s.Rotational == nil || *s.Rotational {
		t.Errorf("%+v %v", s, err)
	}
}

func TestHypervisor(t *testing.T) {
	for _, c := range []struct{ vendor, product, flags, want string }{
		{"QEMU", "Standard PC (Q35 + ICH9, 2009)", "fpu hypervisor", "KVM"},
		{"Amazon EC2", "m5.large", "fpu hypervisor", "Amazon EC2"},
		{"Amazon EC2", "m5.metal", "fpu", ""},
		{"Dell Inc.", "PowerEdge R750", "fpu vme", ""},
		{"", "", "fpu hypervisor", "an unnamed hypervisor"},
	} {
		h := writeTree(t, map[string]string{"/sys/class/dmi/id/sys_vendor": c.vendor, "/sys/class/dmi/id/product_name": c.product, "/proc/cpuinfo": "model name\t: X\nflags\t\t: " + c.flags + "\n"})
		if got := h.Setup().Virtual; got != c.want {
			t.Errorf("%s %s: %q, not %q", c.vendor, c.product, got, c.want)
		}
	}
}
