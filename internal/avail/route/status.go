package route

import (
	"cmp"
	"slices"
	"time"
)

// Status is what a router does at a moment.
type Status struct {
	Group       string             `json:"group"`
	Since       time.Time          `json:"since"` // when it was started
	Epoch       uint64             `json:"epoch"` // of the view in force; 0: nobody has told one
	Primary     string             `json:"primary,omitempty"`
	NoPrimary   string             `json:"no_primary,omitempty"`
	ViewAge     *float64           `json:"view_age_s"` // since a controller last told the view, or that it is unchanged
	Controllers []ControllerStatus `json:"controllers"`
	Doors       []DoorStatus       `json:"doors"`
	Servers     []ServerStatus     `json:"servers"`
	Open        int                `json:"open"` // clients that are here, those that wait included
	Held        int                `json:"held"`
	MostOpen    int                `json:"most_open"`
	MostHeld    int                `json:"most_held"`
	Ending      bool               `json:"ending,omitempty"` // it takes no new clients
}

// ControllerStatus is how a controller answers.
type ControllerStatus struct {
	URL     string `json:"url"`
	Answers bool   `json:"answers"`
	Error   string `json:"error,omitempty"`
	Older   uint64 `json:"older_epoch,omitempty"` // it tells this one, which is older than that in force
}

// DoorStatus is what a listener has seen since the start.
type DoorStatus struct {
	Listen  string  `json:"listen"`
	Role    Role    `json:"role"`
	MaxLag  float64 `json:"max_lag_s,omitempty"`
	Open    int     `json:"open"`    // clients that have a server now
	Held    int     `json:"held"`    // that wait for one now
	Taken   uint64  `json:"taken"`   // clients that came
	Waited  uint64  `json:"waited"`  // that were held
	Refused uint64  `json:"refused"` // that were told an error
	Gone    uint64  `json:"gone"`    // that left while they were held
}

// ServerStatus is a server, and its clients.
type ServerStatus struct {
	Server   string   `json:"server"`
	Address  string   `json:"address"`
	Place    string   `json:"place"` // primary, replica; "": the view has it no more
	Lag      *float64 `json:"lag_s"` // nil: not known
	Weight   float64  `json:"weight"`
	Open     int      `json:"open"`
	Total    uint64   `json:"total"`  // connections since the start
	Cut      uint64   `json:"cut"`    // of these, that were cut
	Failed   uint64   `json:"failed"` // that could not be made
	Down     bool     `json:"down"`   // it did not answer when it was last tried
	Problem  string   `json:"problem,omitempty"`
	ToClient int64    `json:"to_clients_bytes"` // of the connections that are open
	ToServer int64    `json:"to_server_bytes"`
}

// Status is what the router does now.
func (r *Router) Status() Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := Status{Group: r.o.Group, Since: r.started, Open: r.open, Held: r.held, MostOpen: r.most, MostHeld: r.o.MostHeld, Ending: r.ended,
		Controllers: []ControllerStatus{}, Doors: []DoorStatus{}, Servers: []ServerStatus{}}
	servers := map[string]*ServerStatus{}
	at := func(name, address, place string) *ServerStatus {
		if servers[address] == nil {
			servers[address] = &ServerStatus{Server: name, Address: address, Place: place}
		}
		return servers[address]
	}
	if v := r.newest.view; v != nil {
		age := time.Since(r.newest.at).Seconds()
		s.Epoch, s.NoPrimary, s.ViewAge = v.Epoch, v.NoPrimary, &age
		if v.Primary != nil {
			s.Primary = v.Primary.Name
			at(v.Primary.Name, v.Primary.Address, string(Primary)).Weight = v.Primary.Weight
		}
		for _, g := range v.Replicas {
			t := at(g.Name, g.Address, string(Replica))
			if t.Weight = g.Weight; g.Lag != nil {
				lag := g.Lag.Seconds()
				t.Lag = &lag
			}
		}
	}
	for address, b := range r.servers {
		t := at(b.name, address, "")
		t.Open, t.Total, t.Cut, t.Failed, t.Down = len(b.conns), b.total, b.cut, b.failed, b.down
		if b.problem != nil {
			t.Problem = b.problem.Error()
		}
		for c := range b.conns {
			toClient, toServer := c.pair.Carried()
			t.ToClient += toClient
			t.ToServer += toServer
		}
	}
	for _, t := range servers {
		s.Servers = append(s.Servers, *t)
	}
	slices.SortFunc(s.Servers, func(a, b ServerStatus) int {
		return cmp.Or(cmp.Compare(a.Place, b.Place), cmp.Compare(a.Address, b.Address))
	})
	for i, h := range r.heard {
		c := ControllerStatus{URL: r.o.Controllers[i].URL, Answers: h.asked && h.err == nil, Older: h.older}
		if h.err != nil {
			c.Error = h.err.Error()
		}
		s.Controllers = append(s.Controllers, c)
	}
	for i, d := range r.doors {
		o := r.o.Doors[i]
		s.Doors = append(s.Doors, DoorStatus{Listen: o.Listener.Addr().String(), Role: o.Role, MaxLag: o.MaxLag.Seconds(), Open: d.open, Held: d.held,
			Taken: d.taken, Waited: d.waited, Refused: d.refused, Gone: d.gone})
	}
	return s
}
