// Command bench compares Risso with other tools, in one run on the same machine. script/bench calls it.
package main

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/rissodb/risso/internal/fleet"
)

// A tick file holds what collectors read, so that the same samples can be fed to several stores. It is a
// sequence of records: a length, then JSON (new metrics of an instance) or a tick (values as float64).

type tickHead struct {
	Instance string         `json:"instance"`
	Metrics  []fleet.Metric `json:"metrics"` // appended to those before
}

type tick struct {
	instance string
	t        int64
	late     bool
	values   []float64
}

type tickWriter struct{ w *bufio.Writer }

func (tw tickWriter) record(kind byte, b []byte) error {
	var head [5]byte
	head[0] = kind
	binary.LittleEndian.PutUint32(head[1:], uint32(len(b)))
	if _, err := tw.w.Write(head[:]); err != nil {
		return err
	}
	_, err := tw.w.Write(b)
	return err
}

func (tw tickWriter) metrics(instance string, m []fleet.Metric) error {
	b, err := json.Marshal(tickHead{Instance: instance, Metrics: m})
	if err != nil {
		return err
	}
	return tw.record('M', b)
}

func (tw tickWriter) tick(k tick) error {
	b := make([]byte, 0, 16+len(k.instance)+8*len(k.values))
	b = append(b, byte(len(k.instance)))
	b = append(b, k.instance...)
	b = binary.LittleEndian.AppendUint64(b, uint64(k.t))
	late := byte(0)
	if k.late {
		late = 1
	}
	b = append(b, late)
	for _, v := range k.values {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
	}
	return tw.record('T', b)
}

// readTicks calls onMetrics and onTick for each record of a tick file, in order.
func readTicks(path string, onMetrics func(tickHead) error, onTick func(tick) error) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	r := bufio.NewReaderSize(f, 1<<20)
	var head [5]byte
	for {
		if _, err := io.ReadFull(r, head[:]); err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				return nil
			}
			return err
		}
		b := make([]byte, binary.LittleEndian.Uint32(head[1:]))
		if _, err := io.ReadFull(r, b); err != nil {
			return nil // a recording that was cut off ends with its last whole record
		}
		if head[0] == 'M' {
			var h tickHead
			if err := json.Unmarshal(b, &h); err != nil {
				return fmt.Errorf("tick file: %w", err)
			}
			if err := onMetrics(h); err != nil {
				return err
			}
			continue
		}
		if err := onTick(parseTick(b)); err != nil {
			return err
		}
	}
}

func parseTick(b []byte) tick {
	n := int(b[0])
	k := tick{instance: string(b[1 : 1+n]), t: int64(binary.LittleEndian.Uint64(b[1+n:])), late: b[9+n] == 1}
	for b = b[10+n:]; len(b) >= 8; b = b[8:] {
		k.values = append(k.values, math.Float64frombits(binary.LittleEndian.Uint64(b)))
	}
	return k
}
