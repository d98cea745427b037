package binlogevent

import (
	"errors"
	"fmt"
	"io"
)

// wrongSum is the error of an event of n bytes, which were read, whose checksum is wrong.
func (r *Reader) wrongSum(n int) error {
	err := fmt.Errorf("%w: position %d", ErrChecksum, r.pos)
	if r.o.Lost != nil {
		r.pos += int64(n)
	}
	return err
}

// survive reports what cannot be read, and finds where reading goes on. An error of it ends the reading: io.EOF where nothing
// can be read any more.
func (r *Reader) survive(err error) error {
	switch {
	case errors.Is(err, ErrChecksum):
		r.o.Lost(err, 0)
		return nil
	case errors.Is(err, ErrTorn):
		r.o.Lost(err, 0)
		r.inner, r.left = nil, nil
		if _, err := io.Copy(io.Discard, r.in); err != nil {
			return err
		}
		return io.EOF
	case !errors.Is(err, ErrDamaged):
		return err
	case r.left != nil: // the file itself is whole
		lost := int64(0)
		if !errors.Is(err, ErrPayload) && r.inner != nil {
			lost, _ = io.Copy(io.Discard, r.inner)
		}
		r.o.Lost(err, lost)
		return r.skipPayload()
	}
	lost, readErr := io.Copy(io.Discard, r.in)
	if readErr != nil {
		return readErr
	}
	r.o.Lost(err, lost)
	return io.EOF
}

// skipPayload skips a compressed transaction that cannot be read.
func (r *Reader) skipPayload() error {
	left := r.left
	r.inner, r.left, r.sum = nil, nil, nil
	if _, err := io.Copy(io.Discard, left); err != nil {
		return err
	}
	if r.format.Checksum {
		if _, err := r.in.Discard(ChecksumLen); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
	}
	r.pos += int64(r.payload.Length)
	return nil
}
