package repo

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"syscall"
)

// Process identifies a process for others on the same machine.
type Process struct {
	Boot    string `json:"boot"`  // of the machine: /proc/sys/kernel/random/boot_id
	Space   string `json:"space"` // in which the number counts: /proc/self/ns/pid
	PID     int    `json:"pid"`
	Started string `json:"started"`        // in ticks since the machine began: proc(5), /proc/PID/stat, field 22
	Host    string `json:"host,omitempty"` // the machine's name for display; nothing is judged by it
}

// ownProcess is this process; nil if the system does not say.
func ownProcess() *Process {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return nil
	}
	space, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return nil
	}
	pid := os.Getpid()
	started := startOf(pid)
	if started == "" {
		return nil
	}
	host, _ := os.Hostname() // without it the words are fewer
	return &Process{Boot: string(bytes.TrimSpace(boot)), Space: space, PID: pid, Started: started, Host: host}
}

// startOf is when a process began; "" when there is none of that number.
func startOf(pid int) string {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return ""
	}
	_, rest, _ := bytes.Cut(b[bytes.LastIndexByte(b, ')')+1:], []byte(" ")) // a program's name may hold anything
	fields := bytes.Fields(rest)
	const field = 22 - 3
	if len(fields) <= field {
		return ""
	}
	return string(fields[field])
}

// gone reports whether the process has ended for certain. On another machine that is unknown.
func (p *Process) gone() bool {
	own := ownProcess()
	if p == nil || own == nil || p.Boot != own.Boot || p.Space != own.Space || p.PID <= 0 {
		return false
	}
	if started := startOf(p.PID); started != "" {
		return started != p.Started
	}
	return errors.Is(syscall.Kill(p.PID, 0), syscall.ESRCH) // else it is there, but hidden from us (hidepid): its age decides
}
