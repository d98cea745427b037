package shard

import "time"

// Stage is how far a move has come.
type Stage string

// The stages, in their order. Up to Switching a move can be taken back: the map is as it was.
const (
	Copying   Stage = "copying"   // rows are copied, and changes of them follow
	Switching Stage = "switching" // writes of the rows are refused
	Cleaning  Stage = "cleaning"  // the map is another one; the old rows are being deleted
	Undoing   Stage = "undoing"   // the copy is being deleted
	Done      Stage = "done"
	Undone    Stage = "undone"
	Unknown   Stage = "unknown" // the state is that of a backup that was written amid it: how it went on is not known
)

// Progress is how far a table has come.
type Progress struct {
	Table  Table  `json:"table"`
	After  string `json:"after,omitempty"` // the key of the last row that was copied, in SQL
	Copied bool   `json:"copied"`          // all were
	Rows   int64  `json:"rows"`            // at the switch
	Sum    string `json:"sum,omitempty"`   // of them
	Create string `json:"create"`          // its definition when the move began
}

// Place is a place in the binary log of a server.
type Place struct {
	Server string `json:"server"` // who it is
	File   string `json:"file"`
	Pos    int64  `json:"pos"`
}

// Shown is how the new group stood when its rows were the same as those of the old one.
type Shown struct {
	Epoch uint64 `json:"epoch"`         // of its primary
	Had   string `json:"had,omitempty"` // the transactions that it had by then: gtid_executed, or gtid_binlog_state of MariaDB
}

// Move is the journal of rows that move from one group to another.
type Move struct {
	ID      string        `json:"id"` // the guards on the old group have it in their names
	Map     string        `json:"map"`
	By      string        `json:"by"`
	Asked   Asked         `json:"asked"`
	Part    Part          `json:"part"`
	From    string        `json:"from"` // group
	After   Map           `json:"after"`
	Stage   Stage         `json:"stage"`
	Log     Place         `json:"log"`    // of the old group's primary: changes before it are in the copy
	Target  string        `json:"target"` // who the new group's primary is
	Tables  []Progress    `json:"tables"`
	Keep    bool          `json:"keep"`     // the old rows stay
	Grace   time.Duration `json:"grace_ns"` // how long the old group refuses the keys at least
	Began   time.Time     `json:"began"`
	Shown   Shown         `json:"shown,omitzero"`       // by the comparison before the switch
	Fenced  time.Time     `json:"fenced,omitzero"`      // since when writes of the rows are refused
	Switch  time.Time     `json:"switched,omitzero"`    // since when the map is the other one
	Blocked time.Duration `json:"blocked_ns,omitempty"` // from the one to the other
	Changed int64         `json:"changed"`              // rows that changed while they were copied
	Deleted int64         `json:"deleted"`              // from the old group, or of the copy
	Ended   time.Time     `json:"ended,omitzero"`
}

// Made reports whether a map is the one that the move put in the place of another. The epoch does not say so: somebody else may have raised it.
func (m *Move) Made(mp *Map) bool { return mp.Epoch == m.After.Epoch && mp.Move == m.After.Move }
