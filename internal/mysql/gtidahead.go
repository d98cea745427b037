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

// Ahead is how many transactions a replica lacks of a source that logged s, as the numbers of each domain say: position is where the replica is
// (gtid_slave_pos), logged what its own log has had, by which those count as there that it wrote itself.
func (s BinlogState) Ahead(position GTIDSet, logged BinlogState) uint64 {
	lacks, has := map[uint32]uint64{}, map[uint32]uint64{}
	for o, number := range s {
		at := position.domains[o.Domain].Number
		has[o.Domain] = max(has[o.Domain], at)
		if number <= at {
			continue
		}
		if number <= logged[o] {
			has[o.Domain] = max(has[o.Domain], number)
			continue
		}
		lacks[o.Domain] = max(lacks[o.Domain], number)
	}
	n := uint64(0)
	for domain, number := range lacks {
		if number > has[domain] {
			n += number - has[domain]
		} else {
			n++ // by numbers that both gave away
		}
	}
	return n
}
