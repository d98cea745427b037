// Package gtid is the command gtid: arithmetic of GTID sets and positions.
package gtid

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/mysql"
)

const forms = `A set is written as the servers write it: MySQL's gtid_executed and gtid_purged, also with the tags
of 8.3 and later, or MariaDB's gtid_binlog_pos and gtid_slave_pos, one position of each domain, or gtid_binlog_state, one
of each server in each domain, which is then compared server by server. Letters may be
large or small, intervals in any order and overlap, blanks and line breaks may surround commas. @FILE is
read from a file, - from standard input; both must have a line break at least, which is the empty set, as '' is.`

const ofMariaDB = `
MariaDB keeps one position of each domain, which stands for all transactions of the domain up to it.`

// New is risso gtid.
func New(s screen.Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "gtid",
		Short: "Work with GTID sets, find and repair errant transactions",
		Long: `Works with sets of GTIDs without a server (subset, subtract, union, intersect, count, normalize), and finds
and repairs transactions that only a replica has (errant, where, repair).

` + forms,
		Example: `  risso gtid subtract 3e11fa47-71ca-11e1-9e33-c80aa9429562:1-9 3e11fa47-71ca-11e1-9e33-c80aa9429562:1-7
  risso gtid subset @replica.txt @source.txt && echo "nothing errant"
  risso gtid count @executed.txt`,
	}
	cmd.AddCommand(newErrant(s), newWhere(s), newRepair(s), newBack(s), newSubset(s),
		newTwo(s, "subtract", "Print what is in A and not in B", "as GTID_SUBTRACT does: what a replica A has that its source B has not is errant."+ofMariaDB+" What is\nleft is the positions of the domains in which A is farther.", subtract),
		newTwo(s, "union", "Print what is in A or in B", "in either."+ofMariaDB+" Of each domain\nthe farther position counts.", union),
		newTwo(s, "intersect", "Print what is in A and in B", "in both."+ofMariaDB+" Of each domain\nthat both have the position counts that both have reached.", intersect),
		newOne(s, "count", "Print how many transactions are in A", "Prints how many transactions a MySQL set has. MariaDB's positions do not tell: exit code 1."),
		newOne(s, "normalize", "Print A as the server writes it", "Prints a set in the server's own form: small letters, sources in order, intervals merged."))
	return cmd
}

func newTwo(s screen.Streams, name, short, long string, work operation) *cobra.Command {
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
			if words := behind(a, b); words != "" && name == "subtract" {
				fmt.Fprintln(s.Err, "risso:", words)
			}
			return writeSet(s.Out, output, work.of(a, b))
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
			a, err := readSet(s.In, args[0])
			switch {
			case err != nil:
				return err
			case name == "count" && a.set.ByDomain():
				return errors.New("positions of MariaDB do not tell how many transactions there are: numbers of a domain may have gaps, and servers that share them")
			case name == "count" && output == "text":
				_, err = fmt.Fprintln(s.Out, a.set.Count())
				return err
			}
			if len(a.state) > 0 { // as it is: also 0-0-0, which stands for nothing
				return writeSet(s.Out, output, a.state)
			}
			return writeSet(s.Out, output, union.of(a, a))
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
			missing := subtract.of(a, b).String()
			if output == "json" {
				err = render.JSON(s.Out, SubsetAnswer{Subset: missing == "", Missing: missing})
			} else if missing != "" {
				_, err = fmt.Fprintln(s.Out, missing)
			}
			if words := behind(a, b); words != "" {
				fmt.Fprintln(s.Err, "risso:", words)
			}
			if err == nil && missing != "" {
				err = &fault.Told{Code: fault.Failed}
			}
			return err
		},
	}
	flags.OutputVar(cmd.Flags(), &output, "", "text", "json")
	return cmd
}

func writeSet(w io.Writer, output string, r fmt.Stringer) error {
	if set, ok := r.(mysql.GTIDSet); ok && output != "json" { // it may be large
		if err := set.Write(w); err != nil {
			return err
		}
		_, err := fmt.Fprintln(w)
		return err
	}
	if output != "json" {
		_, err := fmt.Fprintln(w, r)
		return err
	}
	a := SetAnswer{Set: r.String()}
	if set, ok := r.(mysql.GTIDSet); ok && !set.ByDomain() {
		n := set.Count()
		a.Count = &n
	}
	return render.JSON(w, a)
}

// operand is a set that was given: transactions or positions, or where domains of MariaDB have several servers, a gtid_binlog_state.
type operand struct {
	set   mysql.GTIDSet
	state mysql.BinlogState // nil: MySQL's
}

// operation works one out of two operands, which are of one kind.
type operation struct {
	sets   func(a, b mysql.GTIDSet) mysql.GTIDSet
	states func(a, b mysql.BinlogState) mysql.BinlogState
}

var (
	subtract  = operation{mysql.GTIDSet.Subtract, mysql.BinlogState.Subtract}
	union     = operation{mysql.GTIDSet.Union, mysql.BinlogState.Union}
	intersect = operation{mysql.GTIDSet.Intersect, mysql.BinlogState.Intersect}
)

func (o operation) of(a, b operand) fmt.Stringer {
	if a.state.Several() || b.state.Several() {
		return o.states(a.state, b.state)
	}
	return o.sets(a.set, b.set)
}

// two reads both sets, which must be of one kind.
func two(in io.Reader, args []string) (a, b operand, err error) {
	if args[0] == "-" && args[1] == "-" {
		return a, b, fault.Usagef("only one of both sets can come from standard input")
	}
	done := make(chan error, 1)
	go func() {
		var err error
		b, err = readSet(in, args[1])
		done <- err
	}()
	a, err = readSet(in, args[0])
	other := <-done
	switch {
	case err != nil:
		return a, b, fmt.Errorf("the first set: %w", err)
	case other != nil:
		return a, b, fmt.Errorf("the second set: %w", other)
	}
	if !a.set.Empty() && !b.set.Empty() && a.set.ByDomain() != b.set.ByDomain() {
		return a, b, fault.Usagef("one of both is MySQL's, the other MariaDB's: they have no transaction in common")
	}
	if a.state.Several() || b.state.Several() {
		return a, b, nil
	}
	for _, x := range a.set.Domains() {
		for _, y := range b.set.Domains() {
			if x.Domain == y.Domain && x.Number == y.Number && x.Server != y.Server {
				return a, b, fault.New(fault.Failed, "compare gtid_binlog_state of both servers instead: it has each server's transactions",
					fmt.Errorf("%s and %s are different transactions with one number: in domain %d neither position includes the other, the servers have diverged", x, y, x.Domain))
			}
		}
	}
	return a, b, nil
}

// readSet reads a set that is given, or named.
func readSet(in io.Reader, arg string) (o operand, err error) {
	set, err := textOf(in, arg)
	if err != nil {
		return o, err
	}
	set = strings.ReplaceAll(set, `\n`, "\n") // as mysql --batch prints line breaks
	if o.set, err = mysql.ParseGTIDSet(set); err != nil {
		return o, fault.New(fault.Usage, "", err)
	}
	if strings.Contains(set, ":") || strings.TrimSpace(set) == "" {
		return o, nil
	}
	if o.state, err = mysql.ParseBinlogState(set); err != nil {
		return o, fault.New(fault.Usage, "", err)
	}
	return o, twice(set)
}

// twice refuses what MariaDB refuses (error 1943): a domain twice in a position. In a gtid_binlog_state it may have several servers, but each of them once.
func twice(set string) error {
	seen := map[mysql.Origin]string{}
	for part := range strings.SplitSeq(set, ",") {
		g, err := mysql.ParseGTID(part)
		if err != nil {
			continue // nothing between two commas: all else was read already
		}
		part = strings.TrimSpace(part)
		o := mysql.Origin{Domain: g.Domain, Server: g.Server}
		if before, is := seen[o]; is {
			return fault.Usagef("%s and %s: neither a position nor a gtid_binlog_state names a domain and a server twice", before, part)
		}
		seen[o] = part
	}
	return nil
}

// behind is what to know of a difference between a gtid_binlog_state and a position, which names only the last server of each domain; "": nothing.
func behind(a, b operand) string {
	if !a.state.Several() || b.state.Several() {
		return ""
	}
	for o, n := range a.state.Subtract(b.state) {
		if b.state.Farthest(o.Domain) >= n {
			return "the first is a gtid_binlog_state, the second a position, which names only the last server of each domain: what others wrote there before looks missing; compare gtid_binlog_state of both servers"
		}
	}
	return ""
}

// textOf is an argument, or what it names: a file by @, standard input by -. A text of tens of megabytes is in memory once.
func textOf(in io.Reader, arg string) (string, error) {
	name, named := strings.CutPrefix(arg, "@")
	if !named && arg != "-" {
		return arg, nil
	}
	var text strings.Builder
	if !named {
		name = "standard input"
	}
	if named {
		f, err := os.Open(name)
		if err != nil {
			return "", err
		}
		defer f.Close()
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			text.Grow(int(info.Size()))
		}
		in = f
	}
	_, err := io.Copy(&text, in)
	if err == nil && text.Len() == 0 { // what should have written it may have failed; mysql prints a line break for the empty set
		return "", fault.New(fault.Usage, "for the empty set give '', or a line break", fmt.Errorf("%s is empty", name))
	}
	return text.String(), err
}
