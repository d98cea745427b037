package mysql

import (
	"slices"
	"strings"
)

// This file says what servers can do with geometry.

// RestrictsSRID reports whether a column can be told which SRID its values have, without which spatial indexes on it are never used: MySQL
// since 8.0.3. Source: MySQL manual, "Spatial Index Optimization".
func (s Server) RestrictsSRID() bool { return s.atLeast(80003) }

// OrdersAxes reports whether the server knows spatial reference systems, and keeps longitude before latitude in those of degrees, whatever
// the order in its functions: MySQL since 8.0. Others keep what they get. Source: MySQL manual, "Spatial Reference System Support".
func (s Server) OrdersAxes() bool { return s.atLeast(80000) }

// ToDegrees is the expression that transforms a geometry, given as WKB with x before y and a SRID, to longitude and latitude; "" if
// the server cannot: MySQL since 8.0.13, of projected systems since 8.0.30. Source: MySQL manual, "ST_Transform".
func (s Server) ToDegrees(wkb, srid string) string {
	if !s.atLeast(80013) {
		return ""
	}
	return "ST_Transform(ST_GeomFromWKB(" + wkb + ", " + srid + ", 'axis-order=long-lat'), 4326)"
}

// ValidatesGeometry reports whether there is ST_IsValid: MySQL since 5.7.6.
func (s Server) ValidatesGeometry() bool { return s.atLeast(50706) }

// geometryTypes are the types of columns that hold geometry, as information_schema names them.
var geometryTypes = []string{"geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon", "geometrycollection", "geomcollection"}

// GeometryTypes are the types of geometry, as information_schema names them.
func GeometryTypes() []string { return geometryTypes }

// GeometryType reports whether a type, as information_schema names it, is one of geometry.
func GeometryType(name string) bool { return slices.Contains(geometryTypes, strings.ToLower(name)) }

// GeometryColumns is the statement that lists the geometry columns of users' tables and views: schema, table, column, type, whether it may be
// NULL, SRID (NULL: none).
func (s Server) GeometryColumns() string {
	srid := "NULL"
	if s.RestrictsSRID() {
		srid = "SRS_ID"
	}
	return "SELECT /* risso: geometry columns */ TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME, COLUMN_TYPE, IS_NULLABLE, " + srid + " FROM information_schema.COLUMNS" +
		" WHERE DATA_TYPE IN ('" + strings.Join(geometryTypes, "', '") + "')" +
		" AND TABLE_SCHEMA NOT IN ('mysql', 'sys', 'information_schema', 'performance_schema')"
}

// Geographic is the statement that says which of some SRIDs are of degrees; "" if the server knows of none.
func (s Server) Geographic(srids string) string {
	if !s.OrdersAxes() {
		return ""
	}
	return "SELECT /* risso: systems of degrees */ SRS_ID FROM information_schema.ST_SPATIAL_REFERENCE_SYSTEMS WHERE DEFINITION LIKE 'GEOGCS%' AND SRS_ID IN (" + srids + ")"
}
