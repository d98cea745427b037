package mysql

// OriginStatement asks where the value of a global variable comes from: CONFIG, COMMAND-LINE, SQL, COMPILED-IN … Sources: MariaDB documentation,
// "Information Schema SYSTEM_VARIABLES Table"; MySQL manual, "The variables_info Table".
func (s Server) OriginStatement(variable string) string {
	if s.MariaDB() {
		return "SELECT /* risso: who set it? */ GLOBAL_VALUE_ORIGIN FROM information_schema.SYSTEM_VARIABLES WHERE VARIABLE_NAME = " + Literal(variable)
	}
	return "SELECT /* risso: who set it? */ CASE VARIABLE_SOURCE WHEN 'COMPILED' THEN 'COMPILED-IN' WHEN 'DYNAMIC' THEN 'SQL' WHEN 'COMMAND_LINE' THEN 'COMMAND-LINE' ELSE 'CONFIG' END FROM performance_schema.variables_info WHERE VARIABLE_NAME = " + Literal(variable)
}
