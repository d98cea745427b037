package check

import (
	"context"

	"github.com/spf13/pflag"

	"github.com/rissodb/risso/internal/watch/alert/tell"
)

// passive is where passive results are sent.
type passive struct {
	to       string // host or host:port; empty: nowhere
	password string // file
	method   string
	service  string
}

func (p *passive) bind(fl *pflag.FlagSet) {
	fl.StringVar(&p.to, "nsca", "", "send a passive result for each server to NSCA at this host, or host:port (5667)")
	fl.StringVar(&p.password, "nsca-password-file", "", "file with NSCA's password")
	fl.StringVar(&p.method, "nsca-method", "xor", "how NSCA encrypts: none, xor, 3des or aes256 (its numbers 0, 1, 3, 14)")
	fl.StringVar(&p.service, "nsca-service", "Risso", "description of the service there")
}

// send sends one result for each service; the host there is the server's name.
func (p *passive) send(ctx context.Context, list []Service) error {
	n := tell.NSCA{Server: p.to, PasswordFile: p.password, Method: p.method}
	if err := n.Check(); err != nil {
		return err
	}
	var results []tell.Passive
	for _, s := range list {
		results = append(results, tell.Passive{Host: s.Server, Service: p.service, Code: s.Code, Text: sum([]Service{s}, want{all: true}).text()})
	}
	return n.Submit(ctx, results)
}
