package tpcc

import (
	"math/rand/v2"
	"time"
)

// timeForm is how moments are written for all servers.
const timeForm = "2006-01-02 15:04:05"

// letters, digits, zip and data add a random text.
func (b *batch) letters(rng *rand.Rand, x, y int64) {
	b.text(func(dst []byte) []byte { return appendText(dst, rng, x, y) })
}

func (b *batch) digits(rng *rand.Rand, n int) {
	b.text(func(dst []byte) []byte { return appendDigits(dst, rng, n) })
}

// address adds street, street, city, state and zip. Source: clause 4.3.3.1.
func (b *batch) address(rng *rand.Rand) {
	b.letters(rng, 10, 20)
	b.letters(rng, 10, 20)
	b.letters(rng, 10, 20)
	b.letters(rng, 2, 2)
	b.text(func(dst []byte) []byte { return appendZip(dst, rng) })
}

// writeItems writes one chunk of the table of items.
func writeItems(b *batch, rng *rand.Rand, part int64) error {
	b.begin("item")
	for i := part*chunk + 1; i <= (part+1)*chunk; i++ {
		b.row()
		b.number(i)
		b.number(between(rng, 1, 10000))
		b.letters(rng, 14, 24)
		b.decimal(between(rng, 100, 10000), 2)
		b.text(func(dst []byte) []byte { return appendData(dst, rng) })
		if err := b.end(); err != nil {
			return err
		}
	}
	return b.send()
}

// writeStock writes one chunk of a warehouse's stock.
func writeStock(b *batch, rng *rand.Rand, w, part int64) error {
	b.begin("stock")
	for i := part*chunk + 1; i <= (part+1)*chunk; i++ {
		b.row()
		b.number(i)
		b.number(w)
		b.number(between(rng, 10, 100))
		for range districts {
			b.letters(rng, 24, 24)
		}
		b.number(0)
		b.number(0)
		b.number(0)
		b.text(func(dst []byte) []byte { return appendData(dst, rng) })
		if err := b.end(); err != nil {
			return err
		}
	}
	return b.send()
}

// writeWarehouse writes a warehouse and its districts.
func writeWarehouse(b *batch, rng *rand.Rand, w int64) error {
	b.begin("district")
	for d := int64(1); d <= districts; d++ {
		b.row()
		b.number(d)
		b.number(w)
		b.letters(rng, 6, 10)
		b.address(rng)
		b.decimal(between(rng, 0, 2000), 4)
		b.decimal(3000000, 2)
		b.number(firstOrders + 1)
		if err := b.end(); err != nil {
			return err
		}
	}
	if err := b.send(); err != nil {
		return err
	}
	b.begin("warehouse")
	b.row()
	b.number(w)
	b.letters(rng, 6, 10)
	b.address(rng)
	b.decimal(between(rng, 0, 2000), 4)
	b.decimal(30000000, 2)
	if err := b.end(); err != nil {
		return err
	}
	return b.send()
}

// writeCustomers writes the customers of a district, and the one row of history that each begins with.
func writeCustomers(b *batch, rng *rand.Rand, w, d int64) error {
	now := "'" + time.Now().UTC().Format(timeForm) + "'"
	b.begin("customer")
	for c := int64(1); c <= customers; c++ {
		b.row()
		b.customer(rng, w, d, c, now)
		if err := b.end(); err != nil {
			return err
		}
	}
	if err := b.send(); err != nil {
		return err
	}
	b.begin("history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data)")
	for c := int64(1); c <= customers; c++ {
		b.row()
		b.number(c)
		b.number(d)
		b.number(w)
		b.number(d)
		b.number(w)
		b.raw(now)
		b.decimal(1000, 2)
		b.letters(rng, 12, 24)
		if err := b.end(); err != nil {
			return err
		}
	}
	return b.send()
}

func (b *batch) customer(rng *rand.Rand, w, d, c int64, now string) {
	b.number(c)
	b.number(d)
	b.number(w)
	b.letters(rng, 8, 16)
	b.raw("'OE'")
	name := c - 1
	if c > namedByCount {
		name = drawLastName(rng, lastNameLoadC)
	}
	b.text(func(dst []byte) []byte { return appendLastName(dst, name) })
	b.address(rng)
	b.digits(rng, 16)
	b.raw(now)
	if rng.IntN(10) == 0 {
		b.raw("'BC'")
	} else {
		b.raw("'GC'")
	}
	b.decimal(5000000, 2)
	b.decimal(between(rng, 0, 5000), 4)
	b.decimal(-1000, 2)
	b.decimal(1000, 2)
	b.number(1)
	b.number(0)
	b.letters(rng, 300, 500)
}

// writeOrders writes the orders of a district, one of each customer in random order, their lines, and which are new.
func writeOrders(b *batch, rng *rand.Rand, w, d int64) error {
	now := "'" + time.Now().UTC().Format(timeForm) + "'"
	lines := make([]int64, firstOrders)
	b.begin("orders")
	for i, c := range rng.Perm(customers) {
		o := int64(i) + 1
		lines[i] = between(rng, fewestLines, mostLines)
		b.row()
		b.number(o)
		b.number(d)
		b.number(w)
		b.number(int64(c) + 1)
		b.raw(now)
		if o <= firstSent {
			b.number(between(rng, 1, 10))
		} else {
			b.null()
		}
		b.number(lines[i])
		b.number(1)
		if err := b.end(); err != nil {
			return err
		}
	}
	if err := b.send(); err != nil {
		return err
	}
	b.begin("order_line")
	for i, n := range lines {
		for l := int64(1); l <= n; l++ {
			b.row()
			b.orderLine(rng, w, d, int64(i)+1, l, now)
			if err := b.end(); err != nil {
				return err
			}
		}
	}
	if err := b.send(); err != nil {
		return err
	}
	b.begin("new_orders")
	for o := int64(firstSent + 1); o <= firstOrders; o++ {
		b.row()
		b.number(o)
		b.number(d)
		b.number(w)
		if err := b.end(); err != nil {
			return err
		}
	}
	return b.send()
}

func (b *batch) orderLine(rng *rand.Rand, w, d, o, l int64, now string) {
	b.number(o)
	b.number(d)
	b.number(w)
	b.number(l)
	b.number(between(rng, 1, items))
	b.number(w)
	if o <= firstSent {
		b.raw(now)
		b.number(5)
		b.decimal(0, 2)
	} else {
		b.null()
		b.number(5)
		b.decimal(between(rng, 1, 999999), 2)
	}
	b.letters(rng, 24, 24)
}
