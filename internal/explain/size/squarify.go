package size

// Box is a rectangle.
type Box struct {
	X float64 `json:"x"`
	Y float64 `json:"y"`
	W float64 `json:"w"`
	H float64 `json:"h"`
}

// Squarify cuts a rectangle into parts whose areas are as the weights, each as close to a square as it can be: rows are filled along the shorter
// side as long as the worst of their parts gets no longer. weights fall; parts of no weight have no area. Source: Bruls, Huizing, van
// Wijk, "Squarified Treemaps", 2000.
func Squarify(weights []float64, in Box) []Box {
	out := make([]Box, len(weights))
	total := 0.0
	for _, w := range weights {
		total += max(w, 0)
	}
	if total <= 0 || in.W <= 0 || in.H <= 0 {
		return out
	}
	scale := in.W * in.H / total
	for i := 0; i < len(weights); {
		side := min(in.W, in.H)
		sum, n := 0.0, 0
		worst := 0.0
		for i+n < len(weights) {
			area := max(weights[i+n], 0) * scale
			grown := sum + area
			first, last := max(weights[i], 0)*scale, area
			ratio := max(side*side*first/(grown*grown), grown*grown/(side*side*max(last, 1e-12)))
			if n > 0 && ratio > worst {
				break
			}
			sum, worst, n = grown, ratio, n+1
		}
		if sum <= 0 {
			break
		}
		in = lay(weights[i:i+n], out[i:i+n], in, sum, scale)
		i += n
	}
	return out
}

// lay puts a row along the shorter side of a rectangle, and returns what is left of that.
func lay(weights []float64, out []Box, in Box, sum, scale float64) Box {
	if in.W >= in.H {
		thick, y := min(sum/in.H, in.W), in.Y // what is left of the sides is rounded
		for i, w := range weights {
			h := max(w, 0) * scale / sum * in.H
			out[i] = Box{in.X, y, thick, h}
			y += h
		}
		return Box{in.X + thick, in.Y, max(in.W-thick, 0), in.H}
	}
	thick, x := min(sum/in.W, in.H), in.X
	for i, w := range weights {
		width := max(w, 0) * scale / sum * in.W
		out[i] = Box{x, in.Y, width, thick}
		x += width
	}
	return Box{in.X, in.Y + thick, in.W, max(in.H-thick, 0)}
}
