package sandbox

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// bringUpOn starts the one server of a sandbox on data that somebody else puts there.
func (s *Sandbox) bringUpOn(ctx context.Context, p *plan) error {
	n, b := s.Nodes[0], p.servers[0]
	if err := os.MkdirAll(filepath.Join(n.dir(), "tmp"), 0o700); err != nil {
		return err
	}
	settings, err := p.data(ctx, n.Datadir)
	if err != nil {
		return fmt.Errorf("node %s: %w", n.Name, err)
	}
	for _, setting := range settings {
		if err := checkSetting(setting); err != nil {
			return fmt.Errorf("node %s: the data needs it: %w", n.Name, err)
		}
	}
	// Run by the server at its start, before anybody can log in (--init-file), one statement a line.
	takeOver := strings.Join(append([]string{"SET sql_log_bin = 0"}, b.recipe.takeOver...), ";\n") + ";\n"
	file := filepath.Join(n.dir(), "take-over.sql")
	if err := os.WriteFile(file, []byte(takeOver), 0o600); err != nil {
		return err
	}
	settings = append(settings, "init_file="+file)
	settings = append(settings, b.recipe.quiet...)
	p.settings = append(settings, p.settings...) // what was asked for comes last and wins
	if err := n.startOnAnyPort(ctx, p, b); err != nil {
		return err
	}
	return s.ready()
}
