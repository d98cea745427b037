package mysql

// Ahead is how many transactions of s are not in o. Of MariaDB's it is what the numbers of each domain say: a domain whose numbers have holes
// has fewer.
func (s GTIDSet) Ahead(o GTIDSet) uint64 {
	n := s.Subtract(o).Count()
	for domain, g := range s.domains {
		if have := o.domains[domain].Number; g.Number > have {
			n += g.Number - have
		}
	}
	return n
}
