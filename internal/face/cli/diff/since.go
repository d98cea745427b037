package diff

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/explain/differ"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/serve/config"
)

// past is a server as risso serve saw it some time ago: its settings, which is what is kept.
func (f diffFlags) past(ctx context.Context, arg string, d *differ.Description, now time.Time) (*differ.Description, error) {
	instance, err := f.instance(arg)
	if err != nil {
		return nil, err
	}
	if err := f.Running.Find("--url"); err != nil {
		return nil, err
	}
	var a struct {
		Variables []struct{ Name, Value string } `json:"variables"`
	}
	then := now.Add(-f.since)
	q := url.Values{"instance": {instance}, "at": {strconv.FormatInt(then.Unix(), 10)}}
	if err := f.Running.Do(ctx, http.MethodGet, "/api/variables?"+q.Encode(), nil, "tell settings of the past", &a); err != nil {
		return nil, err
	}
	if len(a.Variables) == 0 {
		return nil, fault.New(fault.Failed, "give it the name that risso serve calls it by; a shorter --since", fmt.Errorf("%s did not watch %s %s ago", f.Running.URL, instance, digits.Duration(f.since)))
	}
	old := &differ.Description{Format: differ.Format, Name: d.Name + ", " + digits.Duration(f.since) + " ago", Taken: then, Server: d.Server, Variables: map[string]string{}}
	for _, v := range a.Variables {
		if _, now := d.Variables[v.Name]; now || d.Build[v.Name] == "" { // what belongs to the build is compared as such
			old.Variables[v.Name] = v.Value
		}
	}
	delete(old.Variables, "version")
	delete(old.Variables, "hostname")
	for _, area := range []string{differ.AreaServer, differ.AreaPlugins, differ.AreaEngines, differ.AreaCharsets, differ.AreaZones, differ.AreaAccounts} {
		old.Unread = append(old.Unread, differ.Unread{Area: area, Trouble: fleet.Trouble{Why: "risso serve keeps only the history of settings", Remedy: "risso diff --save FILE keeps the rest"}})
	}
	return old, nil
}

// instance is what risso serve calls a server.
func (f diffFlags) instance(arg string) (string, error) {
	c, err := config.Read(f.Server.ConfigFile)
	if err != nil {
		return "", err
	}
	var dsns []string
	if named := c.Named(arg); len(named) > 0 {
		c.Servers = named
	} else {
		c.Servers, dsns = nil, []string{arg}
	}
	list, err := config.Resolve(dsns, f.DefaultsFile, c)
	if err != nil {
		return "", err
	}
	if len(list) != 1 {
		return "", errors.New("no server of that name")
	}
	return list[0].Instance.ID, nil
}
