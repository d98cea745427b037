package geo

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/sqltext"
)

// The checks.
const (
	CheckNoSRID   = "gis.no_srid"           // a column may hold any SRID, so that its spatial index is not used
	CheckAxes     = "gis.axis_order"        // points that fit into the world only with their axes swapped
	CheckInvalid  = "gis.invalid"           // geometries that are not valid
	CheckFunction = "gis.function_no_index" // a condition that no spatial index serves
	CheckMBR      = "gis.mbr"               // boxes are compared where the shapes seem to be meant
)

// Facts are what Check looks at.
type Facts struct {
	RestrictsSRID bool // columns can have a SRID of their own, and indexes need that
	OrdersAxes    bool // the server keeps longitude before latitude, in systems of degrees
	Columns       []Column
	Statements    []Statement
}

// Column is a geometry column, with what a sample of its rows holds.
type Column struct {
	Schema, Table, Name string
	Type                string // as the server writes it
	Nullable            bool
	Rest                string   // what follows the type in CREATE TABLE; "": it is not known
	Generated           bool     // by an expression
	SRID                *uint32  // the column's own; nil: none
	Indexes             []string // spatial ones
	Rows                int64    // of the table, estimated

	Sampled int64 // rows with a geometry; 0: none was looked at
	SRIDs   map[uint32]int64
	Points  int64 // in the sample
	Out     int64 // points whose second coordinate is beyond ±90 and whose axes, swapped, are within the world
	Beyond  int64 // points that are not in the world either way
	Checked int64 // geometries whose validity was asked for
	Invalid int64
}

// Statement is a statement that the server runs.
type Statement struct {
	SQL    string // literals may be ?
	Schema string // the default one
}

// Finding is what is wrong with an object.
type Finding struct {
	ID     string `json:"id"`
	Object string `json:"object"` // schema.table.column
	fleet.Trouble
	Statement string `json:"statement,omitempty"` // the statement that it is about
}

// Check says what is wrong with geometry columns and the statements that search them.
func Check(f Facts) []Finding {
	found := []Finding{}
	for _, c := range f.Columns {
		found = append(found, c.check(f)...)
	}
	seen := map[string]bool{}
	for _, s := range f.Statements {
		for _, x := range s.check(f) {
			if key := x.ID + x.Object + x.Statement; !seen[key] {
				seen[key] = true
				found = append(found, x)
			}
		}
	}
	return found
}

func (c *Column) object() string { return c.Schema + "." + c.Table + "." + c.Name }

func (c *Column) check(f Facts) (found []Finding) {
	add := func(id, what, why, remedy string) {
		found = append(found, Finding{ID: id, Object: c.object(), Trouble: fleet.Trouble{What: what, Why: why, Remedy: remedy}})
	}
	if f.RestrictsSRID && c.SRID == nil {
		what, why := "the column has no SRID of its own", "a spatial index on it would never be used, and geometries of different systems may stand side by side, which fails when they are compared"
		if len(c.Indexes) > 0 {
			what += ": its index " + strings.Join(c.Indexes, ", ") + " is never used"
			why = "the server uses a spatial index only on a column that is restricted to one SRID; until then it reads all rows, and keeps an index that only costs"
		}
		add(CheckNoSRID, what, why, c.restrict())
	}
	if c.Out > 0 {
		what := fmt.Sprintf("latitude and longitude are swapped in %s of %s in a sample", digits.Thousands(c.Out), digits.Counted(c.Points, "point"))
		why := "their second coordinate, which is the latitude, is beyond ±90°, and they are within the world with the axes swapped: distances, areas and maps of them are wrong"
		remedy := "UPDATE " + c.table() + " SET " + mysql.Quote(c.Name) + " = ST_SwapXY(" + mysql.Quote(c.Name) + ")"
		if c.Generated {
			remedy = "swap them in the expression that makes the column"
		} else if !f.OrdersAxes {
			remedy = "write them as POINT(longitude latitude)"
		}
		if c.Beyond == 0 || c.Out > 10*c.Beyond { // else they are of no degrees at all
			add(CheckAxes, what, why, remedy)
		}
	}
	if c.Invalid > 0 {
		add(CheckInvalid, fmt.Sprintf("%s of %s in a sample are not valid", digits.Thousands(c.Invalid), digits.Plural(c.Checked, "geometry", "geometries")),
			"rings that cross themselves and the like: relations and areas of them are undefined, and newer versions refuse them",
			"SELECT * FROM "+c.table()+" WHERE NOT ST_IsValid("+mysql.Quote(c.Name)+"); some can be mended with ST_Validate or ST_Buffer("+mysql.Quote(c.Name)+", 0)")
	}
	return found
}

func (c *Column) table() string { return mysql.TableName{Schema: c.Schema, Name: c.Table}.String() }

// restrict is how the column gets its SRID, if the sample has but one.
func (c *Column) restrict() string {
	if len(c.SRIDs) != 1 {
		if len(c.SRIDs) == 0 {
			return "ALTER TABLE " + c.table() + " MODIFY " + c.definition() + " SRID N, with the N that its values are to have"
		}
		return "its rows have several SRIDs: make them one with ST_Transform, then MODIFY the column with that SRID"
	}
	return c.alter(c.onlySRID())
}

// Restriction are the statements that give the column the SRID that all geometries of its sample have, and take it back; false where there is no such
// SRID, or the definition, which they have to repeat, is not known. Under an index MySQL refuses both, in one statement too (error 3644): it is
// dropped first.
func (c *Column) Restriction() (statement, undo string, ok bool) {
	if len(c.SRIDs) != 1 || c.Rest == "" {
		return "", "", false
	}
	return c.alter(c.onlySRID()), c.alter(""), true
}

// onlySRID is the attribute of a column whose sample has one SRID.
func (c *Column) onlySRID() string {
	for srid := range c.SRIDs {
		return " SRID " + strconv.FormatUint(uint64(srid), 10)
	}
	return ""
}

// alter defines the column anew, with an attribute more.
func (c *Column) alter(attribute string) string {
	drop, add := "", ""
	for _, index := range c.Indexes {
		drop += "ALTER TABLE " + c.table() + " DROP INDEX " + mysql.Quote(index) + "; "
		add += ", ADD SPATIAL INDEX " + mysql.Quote(index) + " (" + mysql.Quote(c.Name) + ")"
	}
	return drop + "ALTER TABLE " + c.table() + " MODIFY " + c.definition() + attribute + add
}

// definition is the column as MODIFY has to repeat it: what it leaves out is lost.
func (c *Column) definition() string {
	rest := c.Rest
	if rest == "" && !c.Nullable {
		rest = " NOT NULL"
	}
	return mysql.Quote(c.Name) + " " + c.Type + rest
}

// see adds a geometry of the sample. The world is ±180 by ±90; projected coordinates are not looked at.
func (c *Column) see(g *Geometry) {
	c.Sampled++
	if c.SRIDs == nil {
		c.SRIDs = map[uint32]int64{}
	}
	c.SRIDs[g.SRID]++
	if g.SRID != 0 && g.SRID != 4326 {
		return
	}
	g.Each(func(p *Point) {
		c.Points++
		x, y := math.Abs(p[0]), math.Abs(p[1])
		switch {
		case x <= 180 && y <= 90:
		case y <= 180 && x <= 90:
			c.Out++
		default:
			c.Beyond++
		}
	})
}

// What functions do with a spatial index, by their names in small letters without st_ or mbr. Sources: MySQL manual, "Spatial Index
// Optimization" and "Functions That Test Spatial Relations Between Geometry Objects"; MariaDB documentation, "SPATIAL INDEX". A test asks real servers.
var (
	relations = map[string]bool{"contains": true, "within": true, "intersects": true, "equals": true, "overlaps": true, "touches": true, "crosses": true, "covers": true, "coveredby": true}
	measures  = map[string]bool{"distance": true, "distance_sphere": true, "hausdorffdistance": true, "frechetdistance": true}
)

// call is a function that is called on a geometry column.
type call struct {
	name   string // in small letters
	column int    // in Facts.Columns
	bare   bool   // the column itself is an argument, and not something made of it
	within string // the function around the column, if it is not bare
}

// check looks at the conditions of a statement.
func (s *Statement) check(f Facts) (found []Finding) {
	tokens := sqltext.Tokens(s.SQL)
	columns := s.columns(f)
	if len(columns) == 0 {
		return nil
	}
	calls := conditions(tokens, columns, f)
	served, exact := map[int]bool{}, map[int]bool{}
	for _, c := range calls {
		if base, kind := baseOf(c.name); relations[base] && c.bare {
			served[c.column] = true
			exact[c.column] = exact[c.column] || kind == "st_"
		} else if measures[base] { // for which a box is the right first sieve
			exact[c.column] = true
		}
	}
	for _, c := range calls {
		column := &f.Columns[c.column]
		base, kind := baseOf(c.name)
		add := func(id, what, why, remedy string) {
			found = append(found, Finding{ID: id, Object: column.object(), Statement: s.SQL, Trouble: fleet.Trouble{What: what, Why: why, Remedy: remedy}})
		}
		name := mysql.Quote(column.Name)
		switch {
		case measures[base] && kind == "st_" && !served[c.column]:
			add(CheckFunction, "the condition with "+strings.ToUpper(c.name)+" is worked out for every row", "no index serves a distance: the server reads all rows and measures each",
				"add a box around the place, which the index serves: AND MBRContains(ST_MakeEnvelope(low, high), "+name+")")
		case relations[base] && !c.bare && !served[c.column]:
			add(CheckFunction, strings.ToUpper(c.name)+" is asked of "+strings.ToUpper(c.within)+" of the column", "the index is on the column, not on what a function makes of it: all rows are read",
				"compare the column itself, and apply the function to the other side")
		case kind != "st_" && relations[base] && c.bare && !exact[c.column] && base != "equals":
			add(CheckMBR, strings.ToUpper(c.name)+" compares boxes", "what lies in the box around a shape, but not in the shape, is found too",
				"if the shape is meant: ST_"+strings.ToUpper(base[:1])+base[1:]+", which uses the same index; for a rectangle both are the same")
		}
	}
	return found
}

// baseOf cuts st_ or mbr from a function's name. What has neither is of the old names, which compare boxes.
func baseOf(name string) (base, kind string) {
	if base, ok := strings.CutPrefix(name, "st_"); ok {
		return base, "st_"
	}
	if base, ok := strings.CutPrefix(name, "mbr"); ok {
		return base, "mbr"
	}
	return name, ""
}

// columns are the geometry columns that names in a statement may mean, by name in small letters.
func (s *Statement) columns(f Facts) map[string]int {
	out := map[string]int{}
	for _, t := range sqltext.Tables([]byte(s.SQL)) {
		schema := cmp.Or(t.Schema, s.Schema)
		for i, c := range f.Columns {
			if strings.EqualFold(c.Table, t.Name) && (schema == "" || strings.EqualFold(c.Schema, schema)) {
				out[strings.ToLower(c.Name)] = i
			}
		}
	}
	return out
}

// conditions are the calls of functions on geometry columns in WHERE, ON and HAVING.
func conditions(tokens []sqltext.Token, columns map[string]int, f Facts) (calls []call) {
	type open struct {
		name    string // "": parentheses without a function
		counted bool   // it is in a condition
	}
	var stack []open
	var inside []bool // of each level: in a condition
	condition := false
	for i, t := range tokens {
		switch {
		case t.Kind == sqltext.TokenSign && t.Text == "(":
			name := ""
			if i > 0 && tokens[i-1].Name() && !clause(tokens[i-1]) {
				name = strings.ToLower(tokens[i-1].Text)
			}
			stack = append(stack, open{name, condition})
			inside = append(inside, condition)
		case t.Kind == sqltext.TokenSign && t.Text == ")":
			if n := len(stack); n > 0 {
				condition = inside[n-1]
				stack, inside = stack[:n-1], inside[:n-1]
			}
		case t.Kind == sqltext.TokenWord && clause(t):
			switch strings.ToUpper(t.Text) {
			case "WHERE", "ON", "HAVING":
				condition = true
			case "SELECT", "FROM", "GROUP", "ORDER", "LIMIT", "JOIN", "SET", "UNION":
				condition = false
			}
		case t.Name() && condition:
			column, ok := columns[strings.ToLower(t.Text)]
			if !ok || i+1 < len(tokens) && tokens[i+1].Text == "." {
				continue
			}
			calls = append(calls, callOf(column, func(k int) (string, bool) {
				if k >= len(stack) {
					return "", false
				}
				o := stack[len(stack)-1-k]
				return o.name, o.counted
			})...)
		}
	}
	return calls
}

// callOf finds the spatial function that a column is in: right around it, or around what another function makes of it.
func callOf(column int, around func(k int) (name string, ok bool)) []call {
	within := ""
	for k := 0; ; k++ {
		name, ok := around(k)
		if !ok {
			return nil
		}
		if name == "" {
			continue
		}
		if base, kind := baseOf(name); relations[base] || measures[base] && kind != "" {
			return []call{{name: name, column: column, bare: within == "", within: within}}
		}
		within = cmp.Or(within, name)
	}
}

// clause reports whether a word begins a part of a statement, or joins conditions.
func clause(t sqltext.Token) bool {
	return t.Kind == sqltext.TokenWord && slices.Contains([]string{"SELECT", "FROM", "WHERE", "ON", "HAVING", "GROUP", "ORDER", "LIMIT", "JOIN", "SET", "UNION", "AND", "OR", "NOT", "IN", "EXISTS", "BY", "VALUES", "XOR"}, strings.ToUpper(t.Text))
}
