// Package toy is for the tests of script/mutants alone.
package toy

const limit = 60

// Left is how much of an age is left.
func Left(age int) int {
	if age < limit {
		return limit - age
	}
	return 0
}
