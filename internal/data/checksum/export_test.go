package checksum

// Loose bounds the hashes of rows that are held in memory for a table without a key.
func (o Options) Loose(rows int) Options {
	o.mostLoose = rows
	return o
}
