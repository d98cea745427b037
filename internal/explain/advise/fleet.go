package advise

// Several joins what was found on several servers, by their names in order: what is the same on several of them is told once.
func Several(servers []string, found [][]Finding) []Finding {
	type key struct{ id, object, statement string }
	at := map[key]int{}
	var list []Finding
	for i, of := range found {
		for _, f := range of {
			k := key{f.ID, f.Object, f.Statement}
			j, ok := at[k]
			if !ok {
				j = len(list)
				at[k] = j
				f.Servers = nil
				list = append(list, f)
			} else {
				list[j] = worse(list[j], f)
			}
			list[j].Servers = append(list[j].Servers, servers[i])
		}
	}
	Rank(list)
	return list
}

// worse keeps the worse of two findings, with what both cost and the servers of the first.
func worse(a, b Finding) Finding {
	sum := Cost{Seconds: a.Cost.Seconds + b.Cost.Seconds, Bytes: a.Cost.Bytes + b.Cost.Bytes, Risk: a.Cost.Risk}
	servers, since := a.Servers, a.Since
	if b.Severity > a.Severity {
		a = b
	}
	if b.Since.IsZero() || since.IsZero() {
		since = b.Since
	} else if b.Since.Before(since) {
		since = b.Since
	}
	a.Cost, a.Servers, a.Since = sum, servers, since
	return a
}
