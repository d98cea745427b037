package datadir

import "testing"

// TestOverlayLine: what mountinfo says of an overlay, as Docker and a mount by hand have it.
func TestOverlayLine(t *testing.T) {
	for line, want := range map[string][2]string{
		`65 43 0:39 / /tmp/ovl/m rw,relatime - overlay overlay rw,lowerdir=/tmp/ovl/l,upperdir=/tmp/ovl/u,workdir=/tmp/ovl/w,uuid=on`:                                                                        {"/tmp/ovl/m", "/tmp/ovl/u"},
		`719 596 0:58 / / rw,relatime master:311 - overlay overlay rw,lowerdir=/var/lib/docker/overlay2/l/A:/var/lib/docker/overlay2/l/B,upperdir=/var/lib/docker/overlay2/c/diff,workdir=/var/lib/docker/w`: {"/", "/var/lib/docker/overlay2/c/diff"},
		`65 43 0:39 / /a\040b rw - overlay overlay rw,lowerdir=/l,upperdir=/u\040v,workdir=/w`:                                                                                                               {"/a b", "/u v"},
		`65 43 0:39 / /ro ro - overlay overlay ro,lowerdir=/l:/k`:                                                                                                                                            {},
		`24 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda1 rw`:                                                                                                                                            {},
		``: {},
	} {
		if at, upper, ok := overlayLine(line); at != want[0] || upper != want[1] || ok != (want[1] != "") {
			t.Errorf("%q: got %q, %q, %v; want %q", line, at, upper, ok, want)
		}
	}
}

// TestShared: file systems of several machines are told, and those of one are not.
func TestShared(t *testing.T) {
	for magic, want := range map[int64]string{0x6969: "NFS", 0xff534d42: "SMB", -0xacb2be: "SMB", 0x01161970: "GFS2", 0x65735546: "FUSE, as GlusterFS, sshfs and virtiofs are", 0xef53: "", 0x58465342: "", 0x9123683e: "", 0x2fc12fc1: "", 0x01021994: "", 0x794c7630: ""} {
		if got := shared(magic); got != want {
			t.Errorf("%#x: got %q; want %q", magic, got, want)
		}
	}
}

// TestLayer: the places of container engines.
func TestLayer(t *testing.T) {
	for dir, want := range map[string]bool{
		"/var/lib/docker/overlay2/0123abcd/diff/var/lib/mysql":                                     true,
		"/var/lib/docker/overlay2/0123abcd/diff":                                                   true,
		"/var/lib/containers/storage/overlay/0123abcd/diff/var/lib/mysql":                          true,
		"/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs/snapshots/52/fs/var/lib/mysql": true,
		"/var/lib/docker/volumes/mysql/_data":                                                      false,
		"/var/lib/docker/overlay2/0123abcd/merged/var/lib/mysql":                                   false,
		"/var/lib/mysql":  false,
		"/srv/diff/mysql": false,
	} {
		if got := layer(dir); got != want {
			t.Errorf("%s: got %v; want %v", dir, got, want)
		}
	}
}
