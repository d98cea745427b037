package tpcc

import (
	"slices"
	"strconv"

	"github.com/rissodb/risso/internal/measure/drive"
)

// newOrder is what a new order is about. Source: clause 2.4.1.
type newOrder struct {
	warehouse, district, customer int64
	lines                         []line
	local                         int64 // 1: all items come from the warehouse itself
}

// line is one item of an order.
type line struct{ item, supplier, quantity int64 }

// noItem is a number that no item has. The last line of one new order in a hundred names it.
const noItem = items + 1

func (c *client) drawNewOrder() newOrder {
	o := newOrder{warehouse: c.home(), district: between(c.rng, 1, districts), customer: drawCustomer(c.rng), local: 1}
	o.lines = c.lines[:between(c.rng, fewestLines, mostLines)]
	for i := range o.lines {
		l := &o.lines[i]
		*l = line{item: drawItem(c.rng), supplier: o.warehouse, quantity: between(c.rng, 1, 10)}
		if c.warehouses > 1 && c.rng.IntN(100) == 0 {
			l.supplier, o.local = c.other(o.warehouse), 0
		}
	}
	// All orders take rows of stock in the same order, so that no two wait for each other.
	slices.SortFunc(o.lines, func(a, b line) int {
		if a.supplier != b.supplier {
			return int(a.supplier - b.supplier)
		}
		return int(a.item - b.item)
	})
	if c.rng.IntN(100) == 0 {
		o.lines[len(o.lines)-1].item = noItem
	}
	return o
}

// newOrder enters an order. Source: clause 2.4.2.
func (c *client) newOrder(o newOrder) error {
	s := &c.statements
	if _, err := c.one(s.buyerAndTax, o.warehouse, o.district, o.customer); err != nil {
		return err
	}
	v, err := c.one(s.takeNumber, o.warehouse, o.district)
	if err != nil {
		return err
	}
	id := v[0].Int
	if _, err := c.do(s.nextNumber, o.warehouse, o.district); err != nil {
		return err
	}
	c.args = [16]drive.Arg{drive.Int(id), drive.Int(o.district), drive.Int(o.warehouse), drive.Int(o.customer), c.stamp(0),
		drive.Int(int64(len(o.lines))), drive.Int(o.local)}
	if _, err := c.session.Do(s.addOrder, c.args[:7]...); err != nil {
		return err
	}
	if _, err := c.do(s.addNew, id, o.district, o.warehouse); err != nil {
		return err
	}
	for i, l := range o.lines {
		if err := c.orderLine(&o, id, int64(i)+1, l); err != nil {
			return err
		}
	}
	return nil
}

// orderLine takes one item from the stock and writes the line.
func (c *client) orderLine(o *newOrder, id, number int64, l line) error {
	s := &c.statements
	r, err := c.do(s.item, l.item)
	switch {
	case err != nil:
		return err
	case r.Rows == 0 && l.item == noItem:
		return errRollback
	case r.Rows != 1:
		return c.missing(s.item, r.Rows)
	}
	price := decimal(r.Values[0].Text, 2)
	v, err := c.one(s.takeStock, l.supplier, l.item)
	if err != nil {
		return err
	}
	quantity := v[0].Int - l.quantity
	if quantity < 10 {
		quantity += 91
	}
	// The text stays valid while setStock runs: the session copies it out of its buffer.
	c.text[2] = append(c.text[2][:0], v[1+o.district].Text...)
	remote := int64(0)
	if l.supplier != o.warehouse {
		remote = 1
	}
	if _, err := c.do(s.setStock, quantity, l.quantity, remote, l.supplier, l.item); err != nil {
		return err
	}
	c.args = [16]drive.Arg{drive.Int(id), drive.Int(o.district), drive.Int(o.warehouse), drive.Int(number), drive.Int(l.item),
		drive.Int(l.supplier), drive.Int(l.quantity), c.amount(1, l.quantity*price), drive.Text(c.text[2])}
	_, err = c.session.Do(s.addLine, c.args[:9]...)
	return err
}

// buyer is a customer, by number or by last name. Source: clauses 2.5.1.2 and 2.6.1.2.
type buyer struct {
	warehouse, district int64
	number              int64 // 0: by name
	name                []byte
}

func (c *client) drawBuyer(w, d int64) buyer {
	b := buyer{warehouse: w, district: d}
	if c.rng.IntN(100) < 60 {
		c.text[3] = appendLastName(c.text[3][:0], drawLastName(c.rng, lastNameRunC))
		b.name = c.text[3]
	} else {
		b.number = drawCustomer(c.rng)
	}
	return b
}

// find returns the customer's number: of those who share a last name the one in the middle, by first name.
func (c *client) find(b buyer) (int64, error) {
	if b.number > 0 {
		return b.number, nil
	}
	c.args = [16]drive.Arg{drive.Int(b.warehouse), drive.Int(b.district), drive.Text(b.name)}
	r, err := c.session.Do(c.statements.byName, c.args[:3]...)
	switch {
	case err != nil:
		return 0, err
	case r.Rows == 0:
		return 0, c.missing(c.statements.byName, 0)
	}
	return r.Values[(len(r.Values)+1)/2-1].Int, nil
}

// payment is what a payment is about. Source: clause 2.5.1.
type payment struct {
	warehouse, district int64 // where it is paid
	buyer               buyer // who pays
	cents               int64
}

func (c *client) drawPayment() payment {
	p := payment{warehouse: c.home(), district: between(c.rng, 1, districts), cents: between(c.rng, 100, 500000)}
	w, d := p.warehouse, p.district
	if c.warehouses > 1 && c.rng.IntN(100) < 15 {
		w, d = c.other(w), between(c.rng, 1, districts)
	}
	p.buyer = c.drawBuyer(w, d)
	return p
}

// The lengths of c_data, and of what a name brings to h_data.
const (
	longestData = 500
	historyName = 10
)

// payment books a customer's payment. Source: clause 2.5.2.
func (c *client) payment(p payment) error {
	s := &c.statements
	c.args = [16]drive.Arg{c.amount(1, p.cents), drive.Int(p.warehouse)}
	if _, err := c.session.Do(s.payWarehouse, c.args[:2]...); err != nil {
		return err
	}
	v, err := c.one(s.warehouse, p.warehouse)
	if err != nil {
		return err
	}
	c.text[2] = append(c.text[2][:0], v[5].Text[:min(len(v[5].Text), historyName)]...)
	c.args = [16]drive.Arg{c.amount(1, p.cents), drive.Int(p.warehouse), drive.Int(p.district)}
	if _, err := c.session.Do(s.payDistrict, c.args[:3]...); err != nil {
		return err
	}
	if v, err = c.one(s.district, p.warehouse, p.district); err != nil {
		return err
	}
	c.text[2] = append(append(c.text[2], "    "...), v[5].Text[:min(len(v[5].Text), historyName)]...)
	b := p.buyer
	id, err := c.find(b)
	if err != nil {
		return err
	}
	if v, err = c.one(s.takeCustomer, b.warehouse, b.district, id); err != nil {
		return err
	}
	if err := c.settle(p, id, v[0].Text, v[1].Text); err != nil {
		return err
	}
	c.args = [16]drive.Arg{drive.Int(b.district), drive.Int(b.warehouse), drive.Int(id), drive.Int(p.district), drive.Int(p.warehouse),
		c.stamp(0), c.amount(1, p.cents), drive.Text(c.text[2])}
	_, err = c.session.Do(s.addHistory, c.args[:8]...)
	return err
}

// settle writes the payment to the customer's row; with bad credit also into the customer's data, in front.
func (c *client) settle(p payment, id int64, credit, data []byte) error {
	b := p.buyer
	if string(credit) != "BC" {
		c.args = [16]drive.Arg{c.amount(1, p.cents), c.amount(1, p.cents), drive.Int(b.warehouse), drive.Int(b.district), drive.Int(id)}
		_, err := c.session.Do(c.statements.pay, c.args[:5]...)
		return err
	}
	t := c.text[0][:0]
	for _, n := range [...]int64{id, b.district, b.warehouse, p.district, p.warehouse} {
		t = append(strconv.AppendInt(t, n, 10), ' ')
	}
	t = append(append(appendDecimal(t, p.cents, 2), ' '), data...)
	c.text[0] = t
	c.args = [16]drive.Arg{c.amount(1, p.cents), c.amount(1, p.cents), drive.Text(t[:min(len(t), longestData)]),
		drive.Int(b.warehouse), drive.Int(b.district), drive.Int(id)}
	_, err := c.session.Do(c.statements.payBad, c.args[:6]...)
	return err
}

// orderStatus reads a customer's last order. Source: clause 2.6.2.
func (c *client) orderStatus(b buyer) error {
	s := &c.statements
	id, err := c.find(b)
	if err != nil {
		return err
	}
	if _, err := c.one(s.customer, b.warehouse, b.district, id); err != nil {
		return err
	}
	v, err := c.one(s.lastOrder, b.warehouse, b.district, id)
	if err != nil {
		return err
	}
	r, err := c.do(s.linesOf, b.warehouse, b.district, v[0].Int)
	if err == nil && r.Rows == 0 {
		return c.missing(s.linesOf, 0)
	}
	return err
}

// delivery delivers the oldest new order of each district, all in one transaction. Source: clause 2.7.4.
func (c *client) delivery(w, carrier int64) error {
	s := &c.statements
	for d := int64(1); d <= districts; d++ {
		r, err := c.do(s.oldestNew, w, d)
		if err != nil {
			return err
		}
		if r.Rows == 0 {
			continue // nothing to deliver: clause 2.7.4.2 has this district skipped
		}
		id := r.Values[0].Int
		if r, err = c.do(s.dropNew, w, d, id); err != nil {
			return err
		} else if r.Affected != 1 {
			return c.missing(s.dropNew, r.Affected)
		}
		v, err := c.one(s.buyerOf, w, d, id)
		if err != nil {
			return err
		}
		customer := v[0].Int
		if _, err := c.do(s.setCarrier, carrier, w, d, id); err != nil {
			return err
		}
		c.args = [16]drive.Arg{c.stamp(0), drive.Int(w), drive.Int(d), drive.Int(id)}
		if _, err := c.session.Do(s.setDelivered, c.args[:4]...); err != nil {
			return err
		}
		if v, err = c.one(s.sumOf, w, d, id); err != nil {
			return err
		}
		c.text[1] = append(c.text[1][:0], v[0].Text...)
		c.args = [16]drive.Arg{drive.Text(c.text[1]), drive.Int(w), drive.Int(d), drive.Int(customer)}
		if _, err := c.session.Do(s.credit, c.args[:4]...); err != nil {
			return err
		}
	}
	return nil
}

// stockLevel counts the items of a district's last 20 orders that run low. Source: clause 2.8.2.
func (c *client) stockLevel(w, d, threshold int64) error {
	v, err := c.one(c.statements.numberNow, w, d)
	if err != nil {
		return err
	}
	_, err = c.one(c.statements.low, w, d, v[0].Int-20, v[0].Int, threshold)
	return err
}
