package advise

import (
	"strconv"
	"strings"

	"github.com/rissodb/risso/internal/explain/geo"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/define"
)

// GeometryChecks are what OfGeometry looks for.
func GeometryChecks() []Check {
	return []Check{
		{geo.CheckNoSRID, "geometry columns without a SRID of their own, whose spatial indexes are never used", "risso map --faults"},
		{geo.CheckAxes, "points that fit into the world only with latitude and longitude swapped", "risso map --faults"},
		{geo.CheckInvalid, "geometries that are not valid", "risso map --faults"},
		{geo.CheckFunction, "spatial conditions that no index serves", "risso map --faults"},
		{geo.CheckMBR, "conditions that compare boxes where shapes seem to be meant", "risso map --faults"},
	}
}

// OfGeometry looks at columns of geometry, and at statements that search them. tables are those of which a definition was read.
func OfGeometry(f geo.Facts, tables map[mysql.TableName]define.Table) (list []Finding) {
	columns := map[string]*geo.Column{}
	for i := range f.Columns {
		c := &f.Columns[i]
		columns[c.Schema+"."+c.Table+"."+c.Name] = c
	}
	for _, x := range geo.Check(f) {
		a := Finding{ID: x.ID, Object: x.Object, Severity: fleet.SeverityWarning, What: x.What, Why: x.Why, Advice: x.Remedy, Sure: Certain, Evidence: []string{}}
		if x.Statement != "" {
			a.Evidence = append(a.Evidence, strings.Join(strings.Fields(x.Statement), " "))
		}
		c := columns[x.Object]
		if c != nil && c.Sampled > 0 {
			a.Evidence = append(a.Evidence, strconv.FormatInt(c.Sampled, 10)+" of its geometries were looked at")
		}
		switch x.ID {
		case geo.CheckNoSRID:
			if c != nil {
				restrictSRID(&a, c, tables[mysql.TableName{Schema: c.Schema, Name: c.Table}])
			}
		case geo.CheckAxes:
			a.Cost.Risk = "distances and maps are wrong"
			a.Sure, a.Doubt = Likely, "of points that fit into the world either way it cannot be told: look at some before all are swapped"
		case geo.CheckInvalid:
			a.Cost.Risk = "answers are wrong"
		case geo.CheckMBR:
			a.Severity, a.Sure, a.Doubt = fleet.SeverityInfo, Likely, "boxes may be what is meant"
		}
		list = append(list, a)
	}
	return list
}

// restrictSRID gives a column the SRID that all of its sample have.
func restrictSRID(a *Finding, c *geo.Column, t define.Table) {
	if len(c.Indexes) == 0 {
		a.Severity = fleet.SeverityInfo
	}
	if len(c.SRIDs) != 1 {
		return
	}
	var srid string
	for n := range c.SRIDs {
		srid = strconv.FormatUint(uint64(n), 10)
	}
	with, without := t.ColumnText(c.Name, c.Type+" SRID "+srid), t.ColumnText(c.Name, c.Type)
	if with == "" {
		return
	}
	alter := "ALTER TABLE " + mysql.TableName{Schema: c.Schema, Name: c.Table}.String() + " "
	drop, add := "", ""
	for _, index := range c.Indexes { // MySQL refuses to change the SRID under an index, in one statement too (error 3644)
		drop += alter + "DROP INDEX " + mysql.Quote(index) + "; "
		add += ", ADD SPATIAL INDEX " + mysql.Quote(index) + " (" + mysql.Quote(c.Name) + ")"
	}
	a.Statement, a.Undo = drop+alter+"MODIFY "+with+add, drop+alter+"MODIFY "+without+add
	a.Advice, a.Effect = "", copies
	a.Sure, a.Doubt = Likely, "if a row that was not looked at has another SRID, the statement fails"
}
