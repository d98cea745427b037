package mapped

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"

	prom "github.com/prometheus/common/model"

	"github.com/rissodb/risso/internal/fleet"
)

// Rules say which labels instances get. A value may contain {id}, {name}, {address}, {host} (the host's part of the address) and {node} (the
// name of the machine it runs on); an empty one takes the label away. What stands further below in this struct wins.
type Rules struct {
	All     map[string]string
	Servers map[string]string
	Hosts   map[string]string
	One     map[string]map[string]string // by the instance's id
}

// The labels that instances have unless rules say otherwise: those of the exporters and of PMM.
var (
	defaults = map[string]string{"instance": "{id}", "node_name": "{node}", "node_type": "generic", "cluster": "default"}
	kinds    = map[fleet.Kind]map[string]string{
		fleet.KindServer: {"job": "mysql", "service_name": "{name}"},
		fleet.KindHost:   {"job": "node", "node_name": "{name}"},
		"":               {"job": "risso"},
	}
)

// words are what a value may contain.
var words = []string{"{id}", "{name}", "{address}", "{host}", "{node}"}

// Check says what is wrong with labels of a config file.
func Check(list map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(list)) {
		value := list[name]
		if !prom.LegacyValidation.IsValidLabelName(name) || strings.HasPrefix(name, prom.ReservedLabelPrefix) {
			return fmt.Errorf("%q is no name of a label: letters, digits and _, not __ at the beginning", name)
		}
		for _, w := range words {
			value = strings.ReplaceAll(value, w, "")
		}
		if strings.ContainsAny(value, "{}") {
			return fmt.Errorf("%s: in braces stands one of %s", name, strings.Join(words, ", "))
		}
	}
	return nil
}

// Labels lists the labels of instances by their ids, each list sorted by name. here is this machine's name.
func (r Rules) Labels(instances []fleet.Instance, here string) map[string][]Label {
	hosts := map[string]string{}
	for _, in := range instances {
		if in.Kind == fleet.KindHost {
			hosts[in.ID] = in.Name
		}
	}
	out := make(map[string][]Label, len(instances))
	for _, in := range instances {
		given := map[fleet.Kind]map[string]string{fleet.KindServer: r.Servers, fleet.KindHost: r.Hosts}[in.Kind]
		chosen := map[string]string{}
		group := map[string]string{}
		if in.Group != "" {
			group["cluster"] = in.Group
		}
		for _, m := range []map[string]string{defaults, kinds[in.Kind], group, r.All, given, r.One[in.ID]} {
			maps.Copy(chosen, m)
		}
		fill := filler(in, cmp.Or(hosts[in.HostID], here))
		list := make([]Label, 0, len(chosen))
		for name, value := range chosen {
			if value = fill.Replace(value); value != "" {
				list = append(list, Label{Name: name, Value: value})
			}
		}
		slices.SortFunc(list, fleet.CompareLabels)
		out[in.ID] = list
	}
	return out
}

// filler puts an instance's words into a value; machine is where it runs, if it runs here.
func filler(in fleet.Instance, machine string) *strings.Replacer {
	host, _, err := net.SplitHostPort(in.Address)
	if err != nil { // a socket, or no address at all
		host = machine
	}
	node := host
	if in.HostID != "" || in.Kind != fleet.KindServer {
		node = machine
	}
	return strings.NewReplacer("{id}", in.ID, "{name}", cmp.Or(in.Name, in.ID), "{address}", in.Address, "{host}", host, "{node}", node)
}
