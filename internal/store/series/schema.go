package series

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/rissodb/risso/internal/fleet"
)

// Bounds on what a file may ask for, against files that lie.
const (
	maxSeries    = 1 << 17  // series of one schema
	maxSchemaRaw = 16 << 20 // its bytes before compression
)

var errSchema = errors.New("schema content does not match its header")

// seriesID is one Desc with its key. All parts of a Store share one value per key and type.
type seriesID struct {
	Desc
	key string
}

type schemaHash [16]byte

// schema is a sorted set of series. It is immutable and shared by every frame, block and
// instance that has the same one: a hundred servers of one version hold their names once.
type schema struct {
	hash   schemaHash
	series []*seriesID // ascending by key
	packed []byte      // compressed encoding, as files carry it
}

// find returns the position of a key, or -1.
func (s *schema) find(key string) int {
	i, ok := slices.BinarySearchFunc(s.series, key, func(d *seriesID, key string) int { return strings.Compare(d.key, key) })
	if !ok {
		return -1
	}
	return i
}

// catalog hands out shared schemas and series.
type catalog struct {
	mu      sync.Mutex
	series  map[string]*seriesID // by type and key
	schemas map[schemaHash]*schema
	enc     *zstd.Encoder
	dec     *zstd.Decoder
}

// keptSchemas is how many schemas stay known when nothing uses them.
const keptSchemas = 512

func newCatalog(dec *zstd.Decoder) (*catalog, error) {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(512<<10),
		zstd.WithLowerEncoderMem(true), zstd.WithSingleSegment(true), zstd.WithEncoderLevel(zstd.SpeedBetterCompression))
	if err != nil {
		return nil, fmt.Errorf("make a compressor: %w", err)
	}
	return &catalog{series: map[string]*seriesID{}, schemas: map[schemaHash]*schema{}, enc: enc, dec: dec}, nil
}

// intern returns the shared value for a Desc.
func (c *catalog) intern(d Desc) *seriesID {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.internLocked(d)
}

func (c *catalog) internLocked(d Desc) *seriesID {
	key := d.Key()
	mapKey := string(rune('0'+d.Type)) + key
	if s := c.series[mapKey]; s != nil {
		return s
	}
	d.Labels = slices.Clone(d.Labels)
	slices.SortFunc(d.Labels, fleet.CompareLabels)
	s := &seriesID{Desc: d, key: key}
	c.series[mapKey] = s
	return s
}

// lookup finds a schema that was seen before.
func (c *catalog) lookup(h schemaHash) *schema {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.schemas[h]
}

// of makes or finds the schema of a set of series, given in any order, each key once.
func (c *catalog) of(list []*seriesID) *schema {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b *seriesID) int { return strings.Compare(a.key, b.key) })
	raw := appendSchema(nil, list)
	h := hashSchema(raw)
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.schemas[h]; s != nil {
		return s
	}
	return c.addLocked(&schema{hash: h, series: list, packed: c.enc.EncodeAll(raw, nil)})
}

func (c *catalog) addLocked(s *schema) *schema {
	if len(c.schemas) >= keptSchemas {
		for h := range c.schemas {
			if delete(c.schemas, h); len(c.schemas) < keptSchemas/2 {
				break
			}
		}
	}
	c.schemas[s.hash] = s
	return s
}

// parse reads a packed schema.
func (c *catalog) parse(packed []byte) (*schema, error) {
	raw, err := unzip(c.dec, packed, nil, maxSchemaRaw)
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	h := hashSchema(raw)
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.schemas[h]; s != nil {
		return s, nil
	}
	descs, err := parseSchema(raw)
	if err != nil {
		return nil, err
	}
	s := &schema{hash: h, packed: slices.Clone(packed), series: make([]*seriesID, len(descs))}
	for i, d := range descs {
		s.series[i] = c.internLocked(d)
	}
	for i := 1; i < len(s.series); i++ {
		if s.series[i-1].key >= s.series[i].key { // each key once
			return nil, errSchema
		}
	}
	return c.addLocked(s), nil
}

// union is the schema of everything in any of the given ones; for one key with two
// types the type of the last is taken.
func (c *catalog) union(list []*schema) *schema {
	if len(list) == 1 {
		return list[0]
	}
	same := true
	for _, s := range list[1:] {
		same = same && s.hash == list[0].hash
	}
	if same {
		return list[0]
	}
	byKey := map[string]*seriesID{}
	for _, s := range list {
		for _, d := range s.series {
			byKey[d.key] = d
		}
	}
	all := make([]*seriesID, 0, len(byKey))
	for _, d := range byKey {
		all = append(all, d)
	}
	return c.of(all)
}

func hashSchema(raw []byte) (h schemaHash) {
	sum := sha256.Sum256(raw)
	copy(h[:], sum[:])
	return h
}

func appendSchema(b []byte, list []*seriesID) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, d := range list {
		b = appendDesc(b, d.Desc)
	}
	return b
}

func parseSchema(raw []byte) ([]Desc, error) {
	in := input{b: raw}
	n := in.length(min(maxSeries, len(raw)))
	list := make([]Desc, 0, n)
	for range n {
		list = append(list, in.desc())
	}
	if in.err != nil || len(in.b) != 0 {
		return nil, errSchema
	}
	return list, nil
}

func appendDesc(b []byte, d Desc) []byte {
	b = append(b, byte(d.Type))
	b = appendText(b, d.Name)
	b = binary.AppendUvarint(b, uint64(len(d.Labels)))
	for _, l := range d.Labels {
		b = appendText(b, l.Name)
		b = appendText(b, l.Value)
	}
	return b
}

func (in *input) desc() (d Desc) {
	d.Type = Type(in.byte())
	if d.Type > Counter {
		in.fail(errSchema)
	}
	d.Name = in.text()
	n := in.length(len(in.b) / 2)
	for range n {
		d.Labels = append(d.Labels, Label{Name: in.text(), Value: in.text()})
	}
	if !slices.IsSortedFunc(d.Labels, fleet.CompareLabels) {
		in.fail(errSchema)
	}
	return d
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func (in *input) text() string { return string(in.bytes(in.length(len(in.b)))) }

// unzip decompresses into dst; b must announce that it holds at most limit bytes.
func unzip(dec *zstd.Decoder, b, dst []byte, limit int) ([]byte, error) {
	var h zstd.Header
	if err := h.Decode(b); err != nil {
		return nil, err
	}
	if !h.HasFCS || h.FrameContentSize > uint64(limit) {
		return nil, zstd.ErrDecoderSizeExceeded
	}
	raw, err := dec.DecodeAll(b, dst)
	if err == nil && len(raw) > limit {
		err = zstd.ErrDecoderSizeExceeded
	}
	return raw, err
}

// newDecompressor makes the decompressor that all readers of a Store share.
func newDecompressor() (*zstd.Decoder, error) {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(2), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(maxSchemaRaw))
	if err != nil {
		return nil, fmt.Errorf("make a decompressor: %w", err)
	}
	return d, nil
}
