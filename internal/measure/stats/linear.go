package stats

import "math"

// solve solves three linear equations by elimination; a coefficient that they do not determine is zero.
func solve(a [3][3]float64, b [3]float64) (x [3]float64) {
	for i := range 3 {
		pivot := i
		for r := i + 1; r < 3; r++ {
			if math.Abs(a[r][i]) > math.Abs(a[pivot][i]) {
				pivot = r
			}
		}
		a[i], a[pivot], b[i], b[pivot] = a[pivot], a[i], b[pivot], b[i]
		if a[i][i] == 0 {
			continue
		}
		for r := i + 1; r < 3; r++ {
			f := a[r][i] / a[i][i]
			for c := i; c < 3; c++ {
				a[r][c] -= f * a[i][c]
			}
			b[r] -= f * b[i]
		}
	}
	for i := 2; i >= 0; i-- {
		if a[i][i] == 0 {
			continue
		}
		x[i] = b[i]
		for c := i + 1; c < 3; c++ {
			x[i] -= a[i][c] * x[c]
		}
		x[i] /= a[i][i]
	}
	return x
}

// inverse inverts a matrix, column by column.
func inverse(a [3][3]float64) (inv [3][3]float64) {
	for c := range 3 {
		var unit [3]float64
		unit[c] = 1
		x := solve(a, unit)
		for r := range 3 {
			inv[r][c] = x[r]
		}
	}
	return inv
}

// cholesky is the lower triangle whose product with its transpose is a; rows that rounding made impossible are zero.
func cholesky(a [3][3]float64) (l [3][3]float64) {
	for i := range 3 {
		for j := 0; j <= i; j++ {
			sum := a[i][j]
			for k := range j {
				sum -= l[i][k] * l[j][k]
			}
			switch {
			case i == j:
				l[i][i] = math.Sqrt(max(sum, 0))
			case l[j][j] > 0:
				l[i][j] = sum / l[j][j]
			}
		}
	}
	return l
}
