// Package toy is used only by the tests of script/mutants.
package toy

const limit = 60

// Left is how much of an age is left.
func Left(age int) int {
	if age < limit {
		return limit - age
	}
	return 0
}
