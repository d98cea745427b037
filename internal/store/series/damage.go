package series

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/rissodb/risso/internal/fleet"
)

// damageReport is a block that a reader found damaged.
type damageReport struct {
	in  *instance
	err error
}

// badHour is a frames file that a reader found damaged.
type badHour struct {
	in   *instance
	hour int64
}

// damagedBlock notes a block whose bytes are not what was written; the worker sets it aside. One written by a newer program is
// reported once, and left alone. It may be called while files are read.
func (in *instance) damagedBlock(r *blockRef, err error) {
	if errors.Is(err, errVersion) && r.newer.Swap(true) {
		return
	}
	w := &in.s.w
	w.damageMu.Lock()
	if _, known := w.damage[r]; !known {
		w.damage[r] = damageReport{in, err}
	}
	w.damageMu.Unlock()
	w.wake()
}

// repair sets damaged blocks aside and keeps what is good in them.
func (w *worker) repair() {
	w.repairFrames()
	for {
		w.damageMu.Lock()
		var ref *blockRef
		var rep damageReport
		for ref, rep = range w.damage {
			delete(w.damage, ref)
			break
		}
		w.damageMu.Unlock()
		if ref == nil {
			return
		}
		if errors.Is(rep.err, errVersion) {
			rep.in.newer(ref.path, rep.err)
			continue
		}
		rep.in.write.Lock()
		err := rep.in.salvage(ref, rep.err)
		rep.in.write.Unlock()
		if err != nil {
			w.s.event(rep.in.id, fleet.SeverityWarning, ref.path, fmt.Sprintf("%s is damaged (%v) and could not be moved aside: %v", ref.path, rep.err, err))
		}
	}
}

// salvage moves a damaged block to the damaged folder and rewrites its good columns. The caller holds write.
func (in *instance) salvage(ref *blockRef, why error) error {
	in.files.RLock()
	there := slices.Contains(in.blocks, ref)
	in.files.RUnlock()
	if !there {
		return nil
	}
	b, err := in.s.blocks.get(ref, in.s)
	if err == nil {
		defer in.s.blocks.release(b)
	}
	to, err2 := in.setAside(ref.path)
	if err2 != nil && !errors.Is(err2, os.ErrNotExist) {
		return err2
	}
	var saved *blockRef
	if err == nil {
		if saved, err = in.rewrite(b, ref); err != nil && os.Rename(to, ref.path) == nil {
			in.s.writeFailed(in.id, err) // no room now: what can be read of it stays where it was
			return nil
		}
	}
	in.replaceDamaged(ref, saved)
	text := fmt.Sprintf("%s was damaged (%v). It is kept as %s; its intact columns were saved.", ref.path, why, to)
	if saved == nil {
		text = fmt.Sprintf("%s was damaged (%v). It is kept as %s; nothing in it could be saved.", ref.path, why, to)
	}
	in.s.event(in.id, fleet.SeverityWarning, ref.path, text)
	return nil
}

// replaceDamaged puts what was saved in place of a block whose file was moved away.
func (in *instance) replaceDamaged(ref, saved *blockRef) {
	in.files.Lock()
	defer in.files.Unlock()
	in.blocks = slices.DeleteFunc(in.blocks, func(r *blockRef) bool { return r == ref })
	if saved != nil {
		in.blocks = append(in.blocks, saved)
		slices.SortFunc(in.blocks, compareBlocks)
	}
	in.s.blocks.drop(ref)
}

// rewrite writes the good columns of a block.
func (in *instance) rewrite(b *blockFile, ref *blockRef) (*blockRef, error) {
	path := filepath.Join(in.dir, blockName(ref.start, ref.end))
	var size int64
	var s *schema
	var err error
	if ref.end-ref.start > hourSeconds {
		size, s, err = in.writeDay(path, ref.start, []*blockFile{b})
	} else {
		size, s, err = in.writeHour(path, ref.start, hourSource{blocks: []*blockFile{b}})
	}
	if err != nil {
		return nil, err
	}
	saved := &blockRef{in: in, path: path, start: ref.start, end: ref.end, size: size, made: time.Now()}
	saved.schema.Store(s)
	return saved, nil
}

// damagedFrames notes a frames file whose bytes changed since it was opened. It may be called while files are read.
func (in *instance) damagedFrames(f *framesFile, err error) {
	var d *damageError
	if !errors.As(err, &d) {
		return
	}
	w := &in.s.w
	w.damageMu.Lock()
	w.badHours[badHour{in, f.hour}] = err
	w.damageMu.Unlock()
	w.wake()
}

// repairFrames sets damaged frames files aside and keeps what is good in them.
func (w *worker) repairFrames() {
	w.damageMu.Lock()
	list := w.badHours
	w.badHours = map[badHour]error{}
	w.damageMu.Unlock()
	for h, why := range list {
		h.in.write.Lock()
		err := h.in.salvageFrames(h.hour, why)
		h.in.write.Unlock()
		if err != nil {
			w.s.event(h.in.id, fleet.SeverityWarning, "", fmt.Sprintf("A damaged file could not be moved aside: %v (%v)", err, why))
		}
	}
}

func (in *instance) salvageFrames(hour int64, why error) error {
	in.files.RLock()
	old := in.hours[hour]
	in.files.RUnlock()
	if old == nil {
		return nil // it became a block, without what was damaged
	}
	b, err := os.ReadFile(old.path)
	if err != nil {
		return fmt.Errorf("read damaged frames: %w", err)
	}
	sc, _ := scanFrames(b, in.id, in.s.cat)
	next := &framesFile{path: old.path, hour: hour, size: int64(len(b)), refs: sc.refs, modified: time.Now()}
	if err := in.rescueFrames(next, b, why); err != nil {
		return err
	}
	next.refs = append(next.refs, old.unsaved()...)
	in.files.Lock()
	in.hours[hour] = next
	in.files.Unlock()
	in.s.frames.drop(old.refs)
	return nil
}
