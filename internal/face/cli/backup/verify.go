package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rissodb/risso/internal/data/binlog/mirror"
	"github.com/rissodb/risso/internal/data/places"
	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/face/cli/flags"
	"github.com/rissodb/risso/internal/face/cli/screen"
	"github.com/rissodb/risso/internal/face/render"
	"github.com/rissodb/risso/internal/fault"
	"github.com/rissodb/risso/internal/home"
)

type verifyFlags struct {
	flags.Source
	places.Trust
	backups      []string
	quick, again bool
	setAside     bool
	threads      int
	output       string
}

// NewVerify is risso verify.
func NewVerify(s screen.Streams) *cobra.Command {
	var f verifyFlags
	cmd := &cobra.Command{
		Use:   "verify --from PLACE",
		Short: "Check backups for damage: read all they need, restore nothing",
		Long: `Reads every object that the backups of a place need and compares it with its recorded name, size,
hash and seal; manifests are read to the end. Any changed bit is found, and so is anything missing.
Mirrored binary logs are compared with their indexes. Objects that no backup needs are counted:
risso backup prune removes them.

An encrypted repository is read with --identity. Without it only the seals of all objects are
checked: this finds damage, but not an object that somebody replaced and sealed again; only with the
identity can the contents be compared with what was signed. An identity that opens nothing there is
an error. What the identity does not open is reported as locked, not as damaged, and never set aside.

An interrupted run continues where it stopped if it is repeated within a day (--again starts over).
The next backup with the same rows would reuse a damaged object, unless it has been set aside
(--set-aside): then the backup stores it again, or risso backup copy brings it from a second place.

` + flags.TrustHelp + `

The exit code is 0 only if everything is whole and signed by a trusted key. To prove that a backup can be restored, use risso drill.

` + fault.Help,
		Example: `  risso verify --from /backups/db1
  risso verify --from 's3://backups/db1?region=eu-central-1' --backup 20261121T183700Z-1a2b3c
  risso verify --from sftp://risso@store/backups/db1 --identity ~/risso.key --output json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runVerify(cmd.Context(), s, f) },
	}
	fl := cmd.Flags()
	f.Source.Bind(cmd)
	flags.BindTrust(&f.Trust, cmd)
	fl.StringArrayVar(&f.backups, "backup", nil, "only the backup with this ID, or newest; may be repeated")
	fl.BoolVar(&f.quick, "quick", false, "only check that objects exist and have the right size; do not read them")
	fl.BoolVar(&f.setAside, "set-aside", false, "move damaged objects to damaged/ in the place, so that the next backup, or a copy from a second place, stores them again")
	fl.BoolVar(&f.again, "again", false, "start over instead of continuing an interrupted run")
	fl.IntVar(&f.threads, "threads", 0, "objects read at once (default two per processor, at most 16)")
	flags.OutputVar(fl, &f.output, "", "text", "json")
	return cmd
}

// journalAge is how old what an interrupted verification noted may be: what was verified earlier is verified again.
const journalAge = 24 * time.Hour

func runVerify(ctx context.Context, s screen.Streams, f verifyFlags) error {
	if f.threads < 0 || f.threads > 256 {
		return fault.Usagef("--threads %d: 1 to 256", f.threads)
	}
	policy, err := f.Trust.Policy(f.From, screen.Says(s.Err))
	if err != nil {
		return err
	}
	f.Source.Policy = policy
	r, closePlace, err := f.Open(ctx)
	if err != nil {
		return err
	}
	defer closePlace()
	o := repo.VerifyOptions{Quick: f.quick, Threads: f.threads, SetAside: f.setAside}
	if o.Backups, err = backupIDs(ctx, r, f.backups); err != nil {
		return places.Failure(ctx, f.From, err)
	}
	if !f.quick {
		o.Journal = filepath.Join(home.Data(), "verify", r.ID)
		if st, err := os.Stat(o.Journal); err == nil && (f.again || time.Since(st.ModTime()) > journalAge) {
			if err := os.Remove(o.Journal); err != nil {
				return err
			}
		}
	}
	began := time.Now()
	progress := screen.NewProgress(s.Err)
	defer progress.End()
	o.Progress = progress.Set
	v, err := r.Verify(ctx, o)
	logs := verifiedLogs{Damaged: []string{}, Foreign: []string{}}
	if err == nil && !f.quick && len(f.backups) == 0 {
		logs, err = verifyLogs(ctx, f.From, f.Identity, places.LogTrust{Policy: policy})
	}
	progress.End()
	if ctx.Err() != nil {
		return fault.New(fault.Interrupted, "started again within a day it continues from here", errors.New("interrupted"))
	}
	if err != nil {
		return places.Failure(ctx, f.From, err)
	}
	seconds := time.Since(began).Seconds()
	if f.output == "json" {
		err = render.JSON(s.Out, VerifiedAnswer{places.Words(f.From), v.Whole() && logs.whole(), seconds, *v, logs})
	} else {
		verifyText(s.Out, v, logs, places.Words(f.From), f.quick, seconds)
	}
	switch {
	case err != nil:
		return err
	case v.Whole() && logs.whole():
		return nil
	case v.Whole() && len(logs.Damaged) == 0:
		return fault.New(fault.Failed, repo.TrustRemedy, fmt.Errorf("%s not signed by a trusted key", digits.Counted(len(logs.Foreign), "mirrored log")))
	case v.Whole():
		return fault.New(fault.Failed, "", fmt.Errorf("%s damaged", digits.Counted(len(logs.Damaged), "mirrored log")))
	}
	remedy := ""
	switch {
	case f.setAside:
	case slices.ContainsFunc(v.Problems, repo.Problem.Taken):
		remedy = "the next backup will reuse a damaged object unless it is set aside: risso verify --set-aside"
	case slices.ContainsFunc(v.Problems, repo.Problem.Movable):
		remedy = "an intact part of a physical backup can only come from a second place: risso verify --set-aside, then risso backup copy from there"
	}
	is := func(k repo.ProblemKind) func(repo.Problem) bool {
		return func(p repo.Problem) bool { return p.Kind == k }
	}
	if slices.ContainsFunc(v.Problems, is(repo.Foreign)) && !slices.ContainsFunc(v.Problems, func(p repo.Problem) bool { return p.Kind != repo.Foreign }) {
		return fault.New(fault.Failed, repo.TrustRemedy, fmt.Errorf("%s not signed by a trusted key", digits.Counted(len(v.Problems), "backup")))
	}
	return fault.New(fault.Failed, remedy, fmt.Errorf("%s, %s cannot be restored in full", digits.Counted(len(v.Problems), "problem"), digits.Counted(len(v.Broken), "backup")))
}

// verifiedLogs is what a verification found about the mirrored binary logs.
type verifiedLogs struct {
	Logs    int      `json:"logs"`
	Damaged []string `json:"damaged"` // each with what is wrong
	Foreign []string `json:"foreign"` // not signed, or not by a trusted key, in words
}

func (v verifiedLogs) whole() bool { return len(v.Damaged)+len(v.Foreign) == 0 }

// verifyLogs reads the finished mirrored logs of a place and compares them with their indexes.
func verifyLogs(ctx context.Context, from, identity string, trust places.LogTrust) (v verifiedLogs, err error) {
	v.Damaged, v.Foreign = []string{}, []string{}
	place, closePlace, err := places.OpenLogs(ctx, from, identity)
	if err != nil {
		return v, err
	}
	defer closePlace()
	list, err := mirror.List(ctx, place, places.MirrorDir("", from))
	if err != nil {
		return v, err
	}
	for _, series := range list {
		for _, name := range series.Lost {
			v.Damaged = append(v.Damaged, fmt.Sprintf("%s/%s: it has no index: its copy was interrupted, or is still running", series.Key, name))
		}
		for _, l := range series.Logs {
			if !l.Finished {
				continue
			}
			v.Logs++
			err := mirror.Verify(ctx, trust.Of(place), series.Key, l)
			if foreign := repo.Untrusted(err); foreign {
				v.Foreign = append(v.Foreign, err.Error())
				err = mirror.Verify(ctx, place, series.Key, l) // it may be damaged nevertheless
			}
			if ctx.Err() != nil {
				return v, ctx.Err()
			}
			if err != nil {
				v.Damaged = append(v.Damaged, fmt.Sprintf("%s/%s: %v", series.Key, l.Name, err))
			}
		}
	}
	return v, nil
}

// backupIDs turns what --backup says into IDs.
func backupIDs(ctx context.Context, r *repo.Repo, list []string) ([]string, error) {
	ids := make([]string, 0, len(list))
	for _, id := range list {
		if id != "newest" {
			ids = append(ids, id)
			continue
		}
		m, err := r.Manifest(ctx, "")
		if err != nil {
			return nil, err
		}
		newest := m.Header.ID
		m.Close()
		ids = append(ids, newest)
	}
	return ids, nil
}

// verifyText shows what a verification found. Of many problems it shows the first.
func verifyText(w io.Writer, v *repo.Verified, logs verifiedLogs, place string, quick bool, seconds float64) {
	const shown = 100
	for i, p := range v.Problems {
		if i == shown {
			fmt.Fprintf(w, "… and %d more; --output json has them all\n", len(v.Problems)-shown)
			break
		}
		needed := ""
		if len(p.Backups) > 0 {
			needed = ", needed by " + strings.Join(p.Backups, ", ")
		}
		aside := ""
		if p.Aside != "" {
			aside = ", set aside"
		}
		fmt.Fprintf(w, "%-8s %s: %s%s%s\n", p.Kind, p.Key, p.What, needed, aside)
	}
	if len(v.Broken) > 0 {
		fmt.Fprintf(w, "Broken   %s\n", strings.Join(v.Broken, ", "))
	}
	how := "read"
	switch {
	case quick:
		how = "there and of the right size; not read (--quick)"
	case v.SealsOnly:
		how = "read and their seals checked; not decrypted (--identity)"
	}
	fmt.Fprintf(w, "Verified %s in %s: %s of %s %s", digits.Counted(len(v.Backups), "backup"), place, digits.Counted(v.Objects, "object"), digits.Bytes(v.Bytes), how)
	if v.Again > 0 {
		fmt.Fprintf(w, ", %d of them by an interrupted run", v.Again)
	}
	fmt.Fprintf(w, ", in %s\n", digits.Seconds(seconds))
	for _, l := range logs.Damaged {
		fmt.Fprintf(w, "damaged  mirrored log %s\n", l)
	}
	for _, l := range logs.Foreign {
		fmt.Fprintf(w, "foreign  %s\n", l)
	}
	if logs.Logs > 0 {
		fmt.Fprintf(w, "Besides  %s\n", digits.Counted(logs.Logs, "mirrored log"))
	}
	if v.Superfluous > 0 {
		fmt.Fprintf(w, "Besides  %s of %s that no backup needs (yet): risso backup prune\n", digits.Counted(v.Superfluous, "object"), digits.Bytes(v.SuperBytes))
	}
	if v.Whole() && logs.whole() {
		fmt.Fprintln(w, "Whole    yes")
	} else {
		fmt.Fprintln(w, "Whole    no")
	}
}
