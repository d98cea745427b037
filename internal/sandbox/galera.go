package sandbox

type galera struct{}
