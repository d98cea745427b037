package flags

import (
	"strings"

	"github.com/spf13/pflag"

	"github.com/rissodb/risso/internal/fault"
)

// ReachVar adds the flag that says where servers are reached from here.
func ReachVar(fl *pflag.FlagSet, list *[]string) {
	fl.StringArrayVar(list, "reach", nil, "ADDRESS=OTHER: use another address for a host, or host:port, that servers tell of; may be repeated")
}

// ParseReach reads it: by what servers tell, the address to use.
func ParseReach(list []string) (map[string]string, error) {
	reach := map[string]string{}
	for _, r := range list {
		from, to, ok := strings.Cut(r, "=")
		if !ok || from == "" || to == "" {
			return nil, fault.Usagef("--reach %q: write it as db1:3306=127.0.0.1:3307, or db1=10.0.0.1", r)
		}
		reach[from] = to
	}
	return reach, nil
}
