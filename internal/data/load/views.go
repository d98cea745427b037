package load

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/rissodb/risso/internal/data/repo"
	"github.com/rissodb/risso/internal/digits"
	"github.com/rissodb/risso/internal/fleet"
	"github.com/rissodb/risso/internal/mysql"
	"github.com/rissodb/risso/internal/mysql/define"
	"github.com/rissodb/risso/internal/mysql/errno"
)

// views makes views in an order in which each finds what it selects from.
type views struct {
	r       *run
	made    []ref
	names   map[[2]string]int // of made, by the names that the backup has
	relaxed map[int]bool      // of made: for now they ask for no definer
}

// makeViews makes all views: what fails because something is not there waits for the others. A view over one whose definer is gone,
// which the server has until it is recreated, is made while that one uses the privileges of its invoker.
func (r *run) makeViews(ctx context.Context, s **session) error {
	v := &views{r: r, names: map[[2]string]int{}, relaxed: map[int]bool{}}
	wait := r.objects[repo.View]
	if err := r.beginStage(ctx, s, repo.View); err != nil {
		return err
	}
	for len(wait) > 0 {
		if err := r.grant(ctx, s, true); err != nil {
			return err
		}
		again, why, err := v.try(ctx, s, wait)
		if err != nil {
			return err
		}
		if len(again) == len(wait) {
			more, err := v.relax(ctx, s, again, why)
			if err != nil {
				return err
			}
			if !more {
				if err := r.brokenViews(again, why); err != nil {
					return err
				}
				break
			}
		}
		wait = again
	}
	// Each is made as it was before those that it is over.
	for i := len(v.made) - 1; i >= 0; i-- {
		if v.relaxed[i] {
			if err := v.replace(ctx, s, i, false); err != nil {
				return err
			}
		}
	}
	return nil
}

// try makes those views that can be made, and says why others cannot.
func (v *views) try(ctx context.Context, s **session, wait []ref) (again []ref, why map[ref]error, err error) {
	r := v.r
	why = map[ref]error{}
	for _, at := range wait {
		l, err := r.spool.get(at)
		if err != nil {
			return nil, nil, err
		}
		o := l.Object
		if r.leftOut[objectKey(o)] {
			continue
		}
		err = r.makeAgain(ctx, s, o)
		switch mysql.ErrorNumber(err) {
		case 0:
			if err != nil {
				return nil, nil, r.objectError(o, err)
			}
			v.names[[2]string{o.Schema, o.Name}] = len(v.made)
			v.made = append(v.made, at)
			r.made.Add(1)
		case errno.NoSuchTable, errno.ViewInvalid, errno.UnknownColumn, errno.NoSuchProgram, errno.UnknownDatabase, errno.NoSuchUser, errno.ProgramDenied, // no EXECUTE for the definer
			1267, 1270, 1271: // collations of columns were made others, which do not go together
			again, why[at] = append(again, at), err
		default:
			if o.Broken && !passes(err) {
				again, why[at] = append(again, at), err
				continue
			}
			if !r.mayStayAway(err) {
				return nil, nil, r.objectError(o, err)
			}
			r.leftOut[objectKey(o)] = true
			r.leave(lost(o, r.objectError(o, err).Error()))
		}
	}
	return again, why, nil
}

// relax lets the views that are below those that wait for a definer, or for the grants that a definer gets at the end, do without one, and
// says whether there were any.
func (v *views) relax(ctx context.Context, s **session, wait []ref, why map[ref]error) (more bool, err error) {
	below := slices.DeleteFunc(slices.Clone(wait), func(at ref) bool {
		n := mysql.ErrorNumber(why[at])
		return n != errno.NoSuchUser && n != errno.ViewInvalid
	})
	seen := map[int]bool{}
	for len(below) > 0 {
		l, err := v.r.spool.get(below[0])
		if err != nil {
			return more, err
		}
		below = below[1:]
		for _, name := range namedBy(l.Object) {
			i, ok := v.names[name]
			if !ok || seen[i] {
				continue
			}
			seen[i] = true
			below = append(below, v.made[i])
			if v.relaxed[i] {
				continue
			}
			if err := v.replace(ctx, s, i, true); err != nil {
				return more, err
			}
			v.relaxed[i], more = true, true
		}
	}
	return more, nil
}

// replace recreates a view: as it was, or with the privileges of its invoker.
func (v *views) replace(ctx context.Context, s **session, i int, invoker bool) error {
	r := v.r
	l, err := r.spool.get(v.made[i])
	if err != nil {
		return err
	}
	o := l.Object
	create, err := r.written(o)
	if err != nil {
		return err
	}
	create = "CREATE OR REPLACE" + strings.TrimPrefix(without(create, "OR", "REPLACE"), "CREATE")
	if begin, end := asDefault.Find(create, "SQL", "SECURITY", "DEFINER"); invoker && begin >= 0 {
		create = create[:begin] + "SQL SECURITY INVOKER" + create[end:]
	}
	schema, _ := r.choice.objectTarget(o)
	err = r.again(ctx, s, func(s *session) error {
		if err := s.use(ctx, schema); err != nil {
			return err
		}
		return r.create(ctx, s, o, schema, create)
	})
	if err != nil {
		return r.objectError(o, err)
	}
	return nil
}

// brokenViews says which views cannot be made, and prints them. A backup of the whole server has those that were broken there too: that
// is no failure of the restore. Whatever has such a view's name on the target stays.
func (r *run) brokenViews(list []ref, why map[ref]error) error {
	for _, at := range list {
		l, err := r.spool.get(at)
		if err != nil {
			return err
		}
		o := l.Object
		r.leftOut[objectKey(o)] = true
		if o.Broken {
			r.notef("view %s is not created: it was broken when the backup was taken, and what it needs is missing here as well (%v): %s", objectName(o), why[at], o.Create)
		} else {
			r.leave(lost(o, "what it needs does not exist: "+why[at].Error()))
		}
	}
	return nil
}

// checkViews opens all views that were made: a server makes one whose definer is not there, or may not read what is below it. One that
// could be opened on the backup's server must work here, too.
func (r *run) checkViews(ctx context.Context, s **session) error {
	unseen := 0
	var denied error
	err := r.each([]repo.ObjectKind{repo.View}, func(o *repo.Object) error {
		if r.leftOut[objectKey(o)] {
			return nil
		}
		schema, name := r.choice.objectTarget(o)
		view := mysql.TableName{Schema: schema, Name: name}
		var fault error
		err := r.again(ctx, s, func(s *session) (err error) {
			fault, err = define.ViewFault(ctx, s.Stream, view)
			return err
		})
		switch {
		case mysql.ClassOf(err) == mysql.ClassPrivilege:
			unseen, denied = unseen+1, err
			return nil
		case mysql.Gone(err) && r.result.Rolled != nil: // the binary logs dropped it
			return nil
		case err != nil || fault == nil:
			return err
		case o.Broken:
			r.notef("view %s is created but does not work, as when the backup was taken: %v", view, fault)
		case r.result.Rolled != nil:
			r.notef("view %s does not work after the roll forward: %v", view, fault)
		case len(r.result.Broken) < maxFindings:
			r.result.Broken = append(r.result.Broken, Finding{Trouble: fleet.Trouble{What: "view " + view.String(), Why: fault.Error()}, Create: o.Create})
		}
		return nil
	})
	if unseen > 0 {
		r.notef("whether %s is not known: %v", digits.Plural(unseen, "view works", "views work"), denied)
	}
	return err
}

// tellBroken says in the plan which views were broken when the backup was taken.
func (r *run) tellBroken() error {
	var names []string
	n := 0
	err := r.each([]repo.ObjectKind{repo.View}, func(o *repo.Object) error {
		if !o.Broken || r.leftOut[objectKey(o)] {
			return nil
		}
		if n++; n <= maxNamed {
			names = append(names, objectName(o))
		}
		return nil
	})
	if n > 0 {
		text := "broken when the backup was taken, and created only if what they need exists here: " + digits.Counted(n, "view") + ", " + strings.Join(names, ", ")
		if n > len(names) {
			text += fmt.Sprintf(" and %d more", n-len(names))
		}
		r.plan.Notes = append(r.plan.Notes, text)
	}
	return err
}
