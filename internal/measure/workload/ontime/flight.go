package ontime

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"
)

// chunk is how many rows are made from one seed, and loaded in one transaction.
const chunk = 10000

// million is the number of rows at scale 1.
const million = 1e6

// flight is one row.
type flight struct {
	id                        int64
	date                      time.Time
	carrier, origin, dest     int
	number, tail              int
	plannedStart, plannedEnd  int // minutes since midnight
	departureDelay            int
	arrivalDelay              int
	taxiOut, taxiIn, airTime  int
	distance                  int
	cancelled, diverted       bool
	leftTheGround, reachedEnd bool
}

// generator makes rows. What it makes depends on the number of rows and the seed only, not on the caller and the order;
// how many rows fall into each year depends on the number of rows alone. It is read-only once made.
type generator struct {
	rows       int64
	seed       uint64
	yearEnd    []int64     // first row after each year
	dayEnd     [][]float64 // for each year, the share of its rows up to the end of each day
	carrierEnd [][]float64 // for each year, the share of the flights up to each carrier
	airportEnd []float64
	distance   [][]int
}

func newGenerator(rows int64, seed uint64) *generator {
	g := &generator{rows: rows, seed: seed}
	var all, sum int
	for _, y := range years {
		all += y.flights
	}
	for _, y := range years {
		sum += y.flights
		g.yearEnd = append(g.yearEnd, int64(math.Round(float64(rows)*float64(sum)/float64(all))))
		g.dayEnd = append(g.dayEnd, dayShares(y.number))
		g.carrierEnd = append(g.carrierEnd, shares(carriers, func(c carrier) float64 {
			if y.number < c.first || y.number > c.last {
				return 0
			}
			return c.share
		}))
	}
	g.airportEnd = shares(airports, func(a airport) float64 { return a.share })
	for _, a := range airports {
		var row []int
		for _, b := range airports {
			row = append(row, max(miles(a, b), 30))
		}
		g.distance = append(g.distance, row)
	}
	return g
}

// shares returns for each item which share of all weights comes up to its end.
func shares[T any](items []T, weight func(T) float64) []float64 {
	var sum float64
	var out []float64
	for _, x := range items {
		sum += weight(x)
		out = append(out, sum)
	}
	for i := range out {
		out[i] /= sum
	}
	return out
}

// pick returns the item in whose share x falls, x in [0, 1).
func pick(ends []float64, x float64) int {
	i, _ := slices.BinarySearchFunc(ends, x, func(end, x float64) int {
		if end <= x {
			return -1
		}
		return 1
	})
	return min(i, len(ends)-1)
}

// begin is the first day with data of a year.
func begin(year int) time.Time {
	if year == years[0].number {
		return time.Date(year, 10, 1, 0, 0, 0, 0, time.UTC)
	}
	return time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)
}

// dayShares weights the days of a year: fewer flights on Saturdays and Sundays and in winter, more in summer.
func dayShares(year int) []float64 {
	var days []time.Time
	for d := begin(year); d.Year() == year; d = d.AddDate(0, 0, 1) {
		days = append(days, d)
	}
	return shares(days, func(d time.Time) float64 {
		w := 1 + 0.04*math.Sin((float64(d.YearDay())-105)/365*2*math.Pi)
		switch d.Weekday() {
		case time.Saturday:
			w *= 0.87
		case time.Sunday:
			w *= 0.95
		}
		return w
	})
}

// perYear is how many rows each year has.
func (g *generator) perYear() map[int]int64 {
	out, last := map[int]int64{}, int64(0)
	for i, y := range years {
		if n := g.yearEnd[i] - last; n > 0 {
			out[y.number] = n
		}
		last = g.yearEnd[i]
	}
	return out
}

func (g *generator) chunks() int64 { return (g.rows + chunk - 1) / chunk }

// each makes the rows of the n-th chunk, in the order of time.
func (g *generator) each(n int64, f func(*flight)) {
	rng := rand.New(rand.NewPCG(g.seed, uint64(n)))
	var x flight
	for i := n * chunk; i < min((n+1)*chunk, g.rows); i++ {
		g.fill(&x, i, rng)
		f(&x)
	}
}

func (g *generator) fill(x *flight, i int64, rng *rand.Rand) {
	y := 0
	for g.yearEnd[y] <= i {
		y++
	}
	first := int64(0)
	if y > 0 {
		first = g.yearEnd[y-1]
	}
	day := pick(g.dayEnd[y], (float64(i-first)+0.5)/float64(g.yearEnd[y]-first))
	*x = flight{id: i + 1, date: begin(years[y].number).AddDate(0, 0, day)}
	x.carrier = pick(g.carrierEnd[y], rng.Float64())
	x.origin = pick(g.airportEnd, rng.Float64())
	for x.dest = x.origin; x.dest == x.origin; {
		x.dest = pick(g.airportEnd, rng.Float64())
	}
	x.distance = g.distance[x.origin][x.dest]
	x.number = 1 + rng.IntN(6999)
	x.tail = 100 + rng.IntN(900)
	x.plannedStart = 5*60 + 5*rng.IntN(17*12+6)
	x.airTime = 18 + int(float64(x.distance)/7.7+5*rng.NormFloat64())
	x.airTime = max(x.airTime, 12)
	x.taxiOut, x.taxiIn = 8+int(rng.ExpFloat64()*7), 3+int(rng.ExpFloat64()*3)
	x.plannedEnd = x.plannedStart + x.airTime + 22
	g.delay(x, rng)
}

// delay draws how late a flight is: most a little early, some late with a heavy tail (log-normal: half of the late ones more
// than 25 minutes, one in a hundred more than four hours), later in the day more.
func (g *generator) delay(x *flight, rng *rand.Rand) {
	fate := rng.Float64()
	x.cancelled, x.diverted = fate < 0.018, fate > 0.998
	x.leftTheGround, x.reachedEnd = !x.cancelled, !x.cancelled && !x.diverted
	hour := float64(x.plannedStart) / 60
	late := 0.19 * carriers[x.carrier].late * (0.5 + hour/15)
	if rng.Float64() < late {
		x.departureDelay = min(int(math.Exp(3.22+rng.NormFloat64())), 1800)
	} else {
		x.departureDelay = max(int(-2+3.5*rng.NormFloat64()), -15)
	}
	x.arrivalDelay = max(x.departureDelay+int(-3+11*rng.NormFloat64()), -60)
}

// columns are those of the table, in the order in which appendRow writes them; the types serve both dialects.
var columns = []struct{ name, kind string }{
	{"id", "BIGINT NOT NULL"},
	{"YearD", "SMALLINT NOT NULL"}, {"Quarter", "SMALLINT NOT NULL"}, {"MonthD", "SMALLINT NOT NULL"}, {"DayofMonth", "SMALLINT NOT NULL"},
	{"DayOfWeek", "SMALLINT NOT NULL"}, {"FlightDate", "DATE NOT NULL"}, {"Carrier", "CHAR(2) NOT NULL"}, {"TailNum", "VARCHAR(6)"},
	{"FlightNum", "INTEGER NOT NULL"}, {"Origin", "CHAR(3) NOT NULL"}, {"OriginState", "CHAR(2) NOT NULL"}, {"Dest", "CHAR(3) NOT NULL"},
	{"DestState", "CHAR(2) NOT NULL"}, {"CRSDepTime", "SMALLINT NOT NULL"}, {"DepTime", "SMALLINT"}, {"DepDelay", "SMALLINT"},
	{"DepDelayMinutes", "SMALLINT"}, {"TaxiOut", "SMALLINT"}, {"TaxiIn", "SMALLINT"}, {"CRSArrTime", "SMALLINT NOT NULL"},
	{"ArrTime", "SMALLINT"}, {"ArrDelay", "SMALLINT"}, {"ArrDelayMinutes", "SMALLINT"}, {"Cancelled", "SMALLINT NOT NULL"},
	{"Diverted", "SMALLINT NOT NULL"}, {"AirTime", "SMALLINT"}, {"Distance", "SMALLINT NOT NULL"},
}

// appendRow writes a row as a list of values in parentheses.
func (x *flight) appendRow(b []byte) []byte {
	num := func(n int) { b = append(strconv.AppendInt(b, int64(n), 10), ',') }
	some := func(has bool, n int) {
		if has {
			num(n)
		} else {
			b = append(b, "NULL,"...)
		}
	}
	text := func(s string) { b = append(append(append(b, '\''), s...), '\'', ',') }
	b = append(strconv.AppendInt(append(b, '('), x.id, 10), ',')
	num(x.date.Year())
	num((int(x.date.Month()) + 2) / 3)
	num(int(x.date.Month()))
	num(x.date.Day())
	num(x.dayOfWeek())
	b = append(x.date.AppendFormat(append(b, '\''), time.DateOnly), '\'', ',')
	text(carriers[x.carrier].code)
	b = append(append(strconv.AppendInt(append(b, "'N"...), int64(x.tail), 10), carriers[x.carrier].code...), '\'', ',')
	num(x.number)
	text(airports[x.origin].code)
	text(airports[x.origin].state)
	text(airports[x.dest].code)
	text(airports[x.dest].state)
	num(clock(x.plannedStart))
	some(x.leftTheGround, clock(x.plannedStart+x.departureDelay))
	some(x.leftTheGround, x.departureDelay)
	some(x.leftTheGround, max(x.departureDelay, 0))
	some(x.leftTheGround, x.taxiOut)
	some(x.reachedEnd, x.taxiIn)
	num(clock(x.plannedEnd))
	some(x.reachedEnd, clock(x.plannedEnd+x.arrivalDelay))
	some(x.reachedEnd, x.arrivalDelay)
	some(x.reachedEnd, max(x.arrivalDelay, 0))
	num(truth(x.cancelled))
	num(truth(x.diverted))
	some(x.reachedEnd, x.airTime)
	num(x.distance)
	b[len(b)-1] = ')'
	return b
}

// dayOfWeek is 1 for Monday to 7 for Sunday.
func (x *flight) dayOfWeek() int { return (int(x.date.Weekday())+6)%7 + 1 }

// clock writes minutes since midnight as the data does: 1345 for a quarter to two.
func clock(minutes int) int {
	minutes = (minutes%1440 + 1440) % 1440
	return minutes/60*100 + minutes%60
}

func truth(b bool) int {
	if b {
		return 1
	}
	return 0
}
