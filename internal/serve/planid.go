package serve

import "github.com/rissodb/risso/internal/explain/plan"

// planID is what makes two plans of a statement the same: the ID of their shape.
func planID(text string) (string, error) {
	p, err := plan.Parse(text)
	if err != nil {
		return "", err
	}
	return plan.ID(p), nil
}
