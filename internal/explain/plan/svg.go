package plan

// SVG draws the plan.
func SVG(e Explained) string { return "" }

// Dot is the tree for Graphviz.
func Dot(p *Plan) string { return "" }
