package read

// LocksCollide is locksCollide, for tests on real servers.
var LocksCollide = locksCollide
