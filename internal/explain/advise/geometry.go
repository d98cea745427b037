package advise

import (
	"strconv"
	"strings"

	"github.com/rissodb/risso/internal/explain/geo"
	"github.com/rissodb/risso/internal/fleet"
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

// OfGeometry looks at columns of geometry, and at statements that search them.
func OfGeometry(f geo.Facts) (list []Finding) {
	columns := map[string]*geo.Column{}
	for i := range f.Columns {
		c := &f.Columns[i]
		columns[c.Schema+"."+c.Table+"."+c.Name] = c
	}
	for _, x := range geo.Check(f) {
		a := Finding{ID: x.ID, Object: x.Object, Severity: fleet.SeverityWarning, What: strings.TrimPrefix(x.Object+": "+x.What, ": "), Why: x.Why, Advice: x.Remedy, Sure: Certain, Evidence: []string{}}
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
				restrictSRID(&a, c)
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
func restrictSRID(a *Finding, c *geo.Column) {
	if len(c.Indexes) == 0 {
		a.Severity = fleet.SeverityInfo
	}
	statement, undo, ok := c.Restriction()
	if !ok {
		return
	}
	a.Statement, a.Undo, a.Advice, a.Effect = statement, undo, "", copies
	a.Sure, a.Doubt = Likely, "if a row that was not looked at has another SRID, the statement fails"
}
