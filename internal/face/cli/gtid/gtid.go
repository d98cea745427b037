// Package gtid is the command gtid: arithmetic of GTID sets and positions.
package gtid

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/mysql"
)

// SetAnswer is a set that was worked out.
type SetAnswer struct {
	Set   mysql.GTIDSet `json:"set"`   // in the server's own form; "" is the empty set
	Count *uint64       `json:"count"` // transactions in it; null: MariaDB's positions do not tell
}

// SubsetAnswer is whether a set is part of another.
type SubsetAnswer struct {
	Subset  bool          `json:"subset"`
	Missing mysql.GTIDSet `json:"missing"` // what is in the first and not in the second
}

const forms = `A set is written as the servers write it: MySQL's gtid_executed and gtid_purged, also with the tags
of 8.3 and later, or MariaDB's gtid_binlog_pos and gtid_slave_pos, one position of each domain. Letters may be
large or small, intervals in any order and overlap, blanks and line breaks may surround commas. @FILE is
read from a file, - from standard input.`

const ofMariaDB = `
MariaDB keeps one position of each domain, which stands for all transactions of the domain up to it.`

// New is risso gtid.
func New(s screen.Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "gtid",
		Short: "Work with GTID sets: subset, subtract, union, intersect, count, normalize",
		Long: `Works with sets of GTIDs, without a server.

` + forms,
		Example: `  risso gtid subtract 3e11fa47-71ca-11e1-9e33-c80aa9429562:1-9 3e11fa47-71ca-11e1-9e33-c80aa9429562:1-7
  risso gtid subset @replica.txt @source.txt && echo "nothing errant"
  mysql -BNe 'SELECT @@gtid_executed' | risso gtid count -`,
	}
	cmd.AddCommand(newSubset(s),
		newTwo(s, "subtract", "Print what is in A and not in B", "as GTID_SUBTRACT does: what a replica A has that its source B has not is errant."+ofMariaDB+" What is\nleft is the positions of the domains in which A is farther.", mysql.GTIDSet.Subtract),
		newTwo(s, "union", "Print what is in A or in B", "in either."+ofMariaDB+" Of each domain\nthe farther position counts.", mysql.GTIDSet.Union),
		newTwo(s, "intersect", "Print what is in A and in B", "in both."+ofMariaDB+" Of each domain\nthat both have the position counts that both have reached.", mysql.GTIDSet.Intersect),
		newOne(s, "count", "Print how many transactions are in A", "Prints how many transactions a MySQL set has. MariaDB's positions do not tell: exit code 1."),
		newOne(s, "normalize", "Print A as the server writes it", "Prints a set in the server's own form: small letters, sources in order, intervals merged."))
	return cmd
}

func newTwo(s screen.Streams, name, short, long string, work func(a, b mysql.GTIDSet) mysql.GTIDSet) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use: name + " A B", Short: short, Long: "Prints what is " + strings.TrimPrefix(long, "as ") + "\n\n" + forms,
		Example: "  risso gtid " + name + " 3e11fa47-71ca-11e1-9e33-c80aa9429562:1-9 3e11fa47-71ca-11e1-9e33-c80aa9429562:1-7",
		Args:    cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			a, b, err := two(s.In, args)
			if err != nil {
				return err
			}
			return writeSet(s.Out, output, work(a, b))
		},
	}
	flags.OutputVar(cmd.Flags(), &output, "", "text", "json")
	return cmd
}

func newOne(s screen.Streams, name, short, long string) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use: name + " A", Short: short, Long: long + "\n\n" + forms,
		Example: "  risso gtid " + name + " 3E11FA47-71CA-11E1-9E33-C80AA9429562:1-5:6",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			set, err := readSet(s.In, args[0])
			switch {
			case err != nil:
				return err
			case name == "count" && set.ByDomain():
				return errors.New("positions of MariaDB do not tell how many transactions there are: numbers of a domain may have gaps, and servers that share them")
			case name == "count" && output == "text":
				_, err = fmt.Fprintln(s.Out, set.Count())
				return err
			}
			return writeSet(s.Out, output, set)
		},
	}
	flags.OutputVar(cmd.Flags(), &output, "", "text", "json")
	return cmd
}

func newSubset(s screen.Streams) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use: "subset A B", Short: "Tell whether all of A is in B",
		Long: `Tells whether all of A is in B, as GTID_SUBSET does.` + ofMariaDB + `

Exit codes: 0 it is; 1 it is not, and what is missing is printed.

` + forms,
		Example: "  risso gtid subset @replica.txt @source.txt",
		Args:    cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			a, b, err := two(s.In, args)
			if err != nil {
				return err
			}
			missing := a.Subtract(b)
			if output == "json" {
				err = writeJSON(s.Out, SubsetAnswer{Subset: missing.Empty(), Missing: missing})
			} else if !missing.Empty() {
				_, err = fmt.Fprintln(s.Out, missing)
			}
			if err == nil && !missing.Empty() {
				err = &fault.Told{Code: fault.Failed}
			}
			return err
		},
	}
	flags.OutputVar(cmd.Flags(), &output, "", "text", "json")
	return cmd
}

func writeSet(w io.Writer, output string, set mysql.GTIDSet) error {
	if output != "json" {
		_, err := fmt.Fprintln(w, set)
		return err
	}
	a := SetAnswer{Set: set}
	if !set.ByDomain() {
		n := set.Count()
		a.Count = &n
	}
	return writeJSON(w, a)
}

func writeJSON(w io.Writer, a any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(a)
}

// two reads both sets, which must be of one kind.
func two(in io.Reader, args []string) (a, b mysql.GTIDSet, err error) {
	if args[0] == "-" && args[1] == "-" {
		return a, b, fault.Usagef("only one of both sets can come from standard input")
	}
	if a, err = readSet(in, args[0]); err != nil {
		return a, b, fmt.Errorf("A: %w", err)
	}
	if b, err = readSet(in, args[1]); err != nil {
		return a, b, fmt.Errorf("B: %w", err)
	}
	if !a.Empty() && !b.Empty() && a.ByDomain() != b.ByDomain() {
		return a, b, fault.Usagef("one of both is MySQL's, the other MariaDB's: they have no transaction in common")
	}
	return a, b, nil
}

// readSet reads a set that is given, or named.
func readSet(in io.Reader, arg string) (mysql.GTIDSet, error) {
	text := []byte(arg)
	var err error
	switch name, named := strings.CutPrefix(arg, "@"); {
	case arg == "-":
		text, err = io.ReadAll(in)
	case named:
		text, err = os.ReadFile(name)
	}
	if err != nil {
		return mysql.GTIDSet{}, err
	}
	set, err := mysql.ParseGTIDSet(string(text))
	if err != nil {
		return set, fault.New(fault.Usage, "", err)
	}
	return set, nil
}
