package host

import "bytes"

// netColumns are the columns of /proc/net/dev that are kept.
var netColumns = [...]struct {
	column int
	t      template
}{
	{0, template{name: "node_network_receive_bytes_total", unit: "bytes", kind: Counter, help: "Bytes received."}},
	{1, template{name: "node_network_receive_packets_total", unit: "1", kind: Counter, help: "Packets received."}},
	{2, template{name: "node_network_receive_errs_total", unit: "1", kind: Counter, help: "Receive errors."}},
	{3, template{name: "node_network_receive_drop_total", unit: "1", kind: Counter, help: "Received packets that were dropped."}},
	{4, template{name: "node_network_receive_fifo_total", unit: "1", kind: Counter, help: "Received packets for which there was no room."}},
	{5, template{name: "node_network_receive_frame_total", unit: "1", kind: Counter, help: "Received packets of a wrong length."}},
	{6, template{name: "node_network_receive_compressed_total", unit: "1", kind: Counter, help: "Compressed packets received."}},
	{7, template{name: "node_network_receive_multicast_total", unit: "1", kind: Counter, help: "Multicast packets received."}},
	{8, template{name: "node_network_transmit_bytes_total", unit: "bytes", kind: Counter, help: "Bytes sent."}},
	{9, template{name: "node_network_transmit_packets_total", unit: "1", kind: Counter, help: "Packets sent."}},
	{10, template{name: "node_network_transmit_errs_total", unit: "1", kind: Counter, help: "Send errors."}},
	{11, template{name: "node_network_transmit_drop_total", unit: "1", kind: Counter, help: "Packets dropped instead of sent."}},
	{12, template{name: "node_network_transmit_fifo_total", unit: "1", kind: Counter, help: "Packets for which there was no room when they were sent."}},
	{13, template{name: "node_network_transmit_colls_total", unit: "1", kind: Counter, help: "Collisions."}},
	{14, template{name: "node_network_transmit_carrier_total", unit: "1", kind: Counter, help: "Packets not sent because the carrier was lost."}},
	{15, template{name: "node_network_transmit_compressed_total", unit: "1", kind: Counter, help: "Compressed packets sent."}},
}

// maxDevices bounds how many interfaces, or disks, are remembered: names that come
// and go (containers) must not grow Risso without end.
const maxDevices = 512

func (h *Host) addNetwork() {
	n := &netDev{h: h, at: map[string]int{}}
	h.add("/proc/net/dev", "network interfaces", "mount /proc", n.parse)

	h.addProtocols()
}

// addProtocols adds TCP, UDP, ICMP and IP, by the names that node_exporter makes of the kernel's.
func (h *Host) addProtocols() {
	snmp := &netStat{h: h}
	snmp.want("Tcp:", "RetransSegs", "node_netstat_Tcp_RetransSegs", Counter, "TCP segments retransmitted: packets get lost on the way.")
	snmp.want("Tcp:", "InSegs", "node_netstat_Tcp_InSegs", Counter, "TCP segments received.")
	snmp.want("Tcp:", "OutSegs", "node_netstat_Tcp_OutSegs", Counter, "TCP segments sent.")
	snmp.want("Tcp:", "InErrs", "node_netstat_Tcp_InErrs", Counter, "TCP segments received in error.")
	snmp.want("Tcp:", "ActiveOpens", "node_netstat_Tcp_ActiveOpens", Counter, "TCP connections opened from here.")
	snmp.want("Tcp:", "PassiveOpens", "node_netstat_Tcp_PassiveOpens", Counter, "TCP connections accepted.")
	snmp.want("Tcp:", "CurrEstab", "node_netstat_Tcp_CurrEstab", Gauge, "TCP connections that are established now.")
	snmp.source = "/proc/net/snmp"
	snmp.want("Tcp:", "OutRsts", "node_netstat_Tcp_OutRsts", Counter, "TCP resets sent.")
	udp, icmp := &netStat{h: h}, &netStat{h: h}
	for field, help := range map[string]string{"InDatagrams": "UDP packets received.", "OutDatagrams": "UDP packets sent.", "NoPorts": "UDP packets for ports on which nobody listens.",
		"InErrors": "UDP packets received in error.", "RcvbufErrors": "UDP packets for which the receiver had no room.", "SndbufErrors": "UDP packets for which the sender had no room."} {
		udp.want("Udp:", field, "node_netstat_Udp_"+field, Counter, help)
	}
	for field, help := range map[string]string{"InMsgs": "ICMP messages received.", "OutMsgs": "ICMP messages sent.", "InErrors": "ICMP messages received in error."} {
		icmp.want("Icmp:", field, "node_netstat_Icmp_"+field, Counter, help)
	}
	h.add(snmp.source, "TCP statistics", "mount /proc", func(b []byte) { snmp.parse(b); udp.parse(b); icmp.parse(b) })

	ext := &netStat{h: h}
	ext.want("TcpExt:", "ListenOverflows", "node_netstat_TcpExt_ListenOverflows", Counter, "Connections refused because the accept queue (back_log) was full.")
	ext.want("TcpExt:", "ListenDrops", "node_netstat_TcpExt_ListenDrops", Counter, "Connections dropped before the server accepted them.")
	ext.want("TcpExt:", "TCPSynRetrans", "node_netstat_TcpExt_TCPSynRetrans", Counter, "SYN packets retransmitted.")
	ext.want("TcpExt:", "TCPTimeouts", "node_netstat_TcpExt_TCPTimeouts", Counter, "TCP retransmission time-outs.")
	ext.source = "/proc/net/netstat"
	for field, help := range map[string]string{"SyncookiesSent": "SYN cookies sent.", "SyncookiesRecv": "SYN cookies that came back.", "SyncookiesFailed": "SYN cookies that were wrong.",
		"TCPOFOQueue": "TCP packets received out of order.", "TCPRcvQDrop": "TCP packets dropped because the receiver's queue was full."} {
		ext.want("TcpExt:", field, "node_netstat_TcpExt_"+field, Counter, help)
	}
	ip := &netStat{h: h}
	ip.want("IpExt:", "InOctets", "node_netstat_IpExt_InOctets", Counter, "Bytes received in IP packets.")
	ip.want("IpExt:", "OutOctets", "node_netstat_IpExt_OutOctets", Counter, "Bytes sent in IP packets.")
	h.add(ext.source, "TCP extended statistics", "mount /proc", func(b []byte) { ext.parse(b); ip.parse(b) })
}

// netDev parses /proc/net/dev.
type netDev struct {
	h  *Host
	at map[string]int // first position by name; -1 for an interface that is skipped
}

// skipInterface skips the host's ends of container networks, which come and
// go by the hundred.
func skipInterface(name string) bool {
	for _, p := range []string{"veth", "cali", "lxc", "tap"} {
		if len(name) > len(p) && name[:len(p)] == p {
			return true
		}
	}
	return false
}

func (n *netDev) parse(b []byte) {
	in := cursor{b: b}
	for {
		l, ok := in.line()
		if !ok {
			return
		}
		// A name may hold a colon itself (old aliases: eth0:1), the figures never do.
		end := bytes.LastIndexByte(l.b, ':')
		if end < 0 {
			continue
		}
		name := bytes.TrimLeft(l.b[:end], " ")
		l.i = end + 1
		var v [16]uint64
		good, any := true, false
		for i := range v {
			if v[i], good = l.uint(); !good {
				break
			}
			any = any || v[i] != 0
		}
		if !good || len(name) == 0 {
			continue
		}
		first, known := n.at[string(name)]
		if !known {
			// An interface that never carried anything is no series yet.
			if !any || len(n.at) >= maxDevices {
				continue
			}
			first = n.define(string(name))
		}
		if first < 0 {
			continue
		}
		for i := range netColumns {
			n.h.values[first+i] = float64(v[netColumns[i].column])
		}
	}
}

func (n *netDev) define(name string) int {
	first := -1
	if !skipInterface(name) {
		ts := make([]template, len(netColumns))
		for i, c := range netColumns {
			ts[i] = c.t
		}
		first = n.h.defineAll(ts, "/proc/net/dev", Label{Name: "device", Value: name})
	}
	n.at[name] = first
	return first
}

// netStat parses /proc/net/snmp and /proc/net/netstat: a line of names, then a
// line of figures. The positions of the wanted names are found once and again only
// when the line of names changes.
type netStat struct {
	h      *Host
	source string
	wants  []netWant
	header []byte // the line of names that the columns belong to
}

type netWant struct {
	prefix, field string
	at            int
	column        int // -1: not there
}

func (n *netStat) want(prefix, field, name string, kind Kind, help string) {
	source := "/proc/net/snmp"
	if prefix == "TcpExt:" || prefix == "IpExt:" {
		source = "/proc/net/netstat"
	}
	at := n.h.define(Metric{Name: name, Counter: kind == Counter, Unit: "1", Help: help, Source: source})
	n.wants = append(n.wants, netWant{prefix: prefix, field: field, at: at, column: -1})
}

func (n *netStat) parse(b []byte) {
	prefix := n.wants[0].prefix
	in := cursor{b: b}
	for {
		names, ok := in.line()
		if !ok {
			return
		}
		if !hasPrefix(names.b, prefix) {
			continue
		}
		figures, ok := in.line()
		if !ok || !hasPrefix(figures.b, prefix) {
			return
		}
		if !bytes.Equal(names.b, n.header) {
			n.learn(names)
		}
		n.take(figures)
		return
	}
}

// learn works out the columns of the wanted names.
func (n *netStat) learn(names cursor) {
	n.header = append(n.header[:0], names.b...)
	for i := range n.wants {
		n.wants[i].column = -1
	}
	names.field() // the prefix
	for column := 0; ; column++ {
		f := names.field()
		if len(f) == 0 {
			return
		}
		for i := range n.wants {
			if n.wants[i].field == string(f) {
				n.wants[i].column = column
			}
		}
	}
}

func (n *netStat) take(figures cursor) {
	figures.field()
	for column := 0; ; column++ {
		f := figures.field()
		if len(f) == 0 {
			return
		}
		for i := range n.wants {
			if w := &n.wants[i]; w.column == column {
				if v, ok := parseUint(f); ok {
					n.h.values[w.at] = float64(v)
				}
			}
		}
	}
}
