package digest

import (
	"fmt"
	"slices"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fault"
)

// NoLog distinguishes a file that is no log from one in which nothing happened. What servers keep next to logs may be among them,
// as a pattern of names matches it, but not alone.
func (p *Profile) NoLog(format string) error {
	logs := slices.ContainsFunc(p.Sources, func(s SourceInfo) bool { return s.PassedOver == "" })
	for _, s := range p.Sources {
		if s.PassedOver != "" && !logs {
			return fault.New(fault.Failed, Readable, fmt.Errorf("%s is not a log: it is %s", s.Name, s.PassedOver))
		}
		if s.PassedOver != "" || s.Events > 0 || s.Quiet != "" || s.Server != "" && s.Unread == 0 {
			continue
		}
		looks := ""
		if s.Looks != "" {
			looks = "; it looks like " + s.Looks
		}
		return fault.New(fault.Failed, Readable+"; use --format to say which",
			fmt.Errorf("%s: no statement of a %slog in %s%s", s.Name, map[bool]string{true: "", false: format + " "}[format == "auto"], digits.Counted(s.Bytes, "byte"), looks))
	}
	return nil
}
